"""The six programs of legion_cc, word for word, over the real service; its control API; its old commands."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from legion.cli.legion_cc.programs import run
from legion.domain.tickets.ticket import Start
from legion.store.board import tickets
from tests.api.serving import Served
from tests.support.board import Board

NEEDED = ("-c", "In app/", "-k", "make test passes")


@pytest.fixture
def program(
    board: Board, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    for name in ("LEGION_ORCHESTRATE_PORT", "LEGION_WORKER_ID"):
        monkeypatch.delenv(name, raising=False)

    def call(name: str, *words: str) -> tuple[int, str, str]:
        code = run(name, list(words))
        out, err = capsys.readouterr()
        return code, out, err

    return call


def test_dispatch_check_status_stop_and_deps_print_what_legion_cc_prints(board: Board, program):
    assert program("check") == (
        0,
        "=== Ticket Queue ===\nTotal: 0  |  Queued: 0  |  Working: 0  |  Done: 0  |  Error: 0\n\nNo tickets.\n",
        "",
    )
    assert program("status") == (0, "No tickets.\n", "")
    code, out, err = program("dispatch", "1", "-t", "Login", *NEEDED, "--team", "solo", "-p", "Plan", "A", "page")
    assert (code, err) == (0, "")
    first = int(out.splitlines()[-1].removeprefix("Ticket ID: "))
    assert out == f"Dispatched to worker 1: A page\nTeam: solo\nTicket ID: {first}\n"
    page = board.service.ticket(first)
    assert (page.ticket.title, page.text, page.plan, page.ticket.team) == ("Login", "A page", "Plan", "solo")

    long = "Something that needs more than forty letters"
    out = program("dispatch", "2", *NEEDED, "-a", f"{first}, x", "--checkpoint", long)[1]
    second = int(out.splitlines()[-1].removeprefix("Ticket ID: "))
    line = board.service.ticket(second).ticket
    assert (line.title, line.after, line.checkpoint) == (f"{long[:40]}...", [first], True)

    with board.store.write() as tx:
        tickets.move(tx, first, Start(board.base))
    out = program("check")[1]
    assert "Total: 2  |  Queued: 1  |  Working: 1  |  Done: 0  |  Error: 0\n" in out
    assert "--- QUEUED (1) ---\n" in out
    assert re.search(rf'--- WORKING \(1\) ---\n  \[{first}\] "Login" worker={first}  \(\d+s\)\n\n', out)
    assert program("status")[1] == f"W{first}[..] #{second}[??]\n"
    found = json.loads(program("deps", str(second))[1])
    assert (found["ticket_id"], [one["id"] for one in found["dependencies"]]) == (second, [first])
    assert program("stop", str(first))[:2] == (0, f"Worker {first} stopped\n")
    assert program("stop", "all")[:2] == (0, "All workers stopped\n")
    assert program("status")[1] == f"#{first}[!!] #{second}[!!]\n"


def test_a_worker_reports_and_finds_its_own_ticket(board: Board, program, monkeypatch: pytest.MonkeyPatch):
    number = board.put(7, "Seven", "working").id
    monkeypatch.setenv("LEGION_WORKER_ID", str(number))
    assert json.loads(program("deps")[1]) == {"ticket_id": number, "dependencies": []}
    code, out, _ = program("report", "done", "It", "works")
    file = Path(f"/tmp/legion/results/worker-{number}.md")
    assert (code, out) == (0, f"Worker {number} reported: done - It works\nResult written to {file}\n")
    assert file.read_text().endswith(f"---\n\n# Worker {number} Result\n\nIt works\n")
    file.unlink()
    assert "Summary: It works" in program("check")[1]
    monkeypatch.setenv("LEGION_WORKER_ID", "99")
    assert program("deps") == (1, "", "Error: no active ticket found for worker 99\n")
    assert program("report", "error") == (1, "", 'Error (HTTP 400): {"error":"worker has no active ticket"}\n')


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("dispatch",), "Usage: legion-dispatch <worker_id>"),
        (("dispatch", "x", "text"), "Error: worker_id must be a number, got 'x'"),
        (("dispatch", "1", "-c", "x"), "Usage: legion-dispatch <worker_id>"),
        (("dispatch", "1", "text"), "Error: -c/--context is required."),
        (("dispatch", "1", "-c", "x", "text"), "Error: -k/--criteria is required."),
        (("dispatch", "1", *NEEDED, "-a", "4711", "text"), "Error (HTTP 400): "),
        (("stop",), "Usage: legion-stop <worker_id|all>"),
        (("stop", "x"), "Error: argument must be a worker_id (number) or 'all', got 'x'"),
        (("report",), "Usage: legion-report <done|error>"),
        (("report", "maybe"), "Error: status must be 'done' or 'error', got 'maybe'"),
    ],
    ids=lambda words: "-".join(words) if isinstance(words, tuple) else "",
)
def test_a_mistake_ends_with_1_and_legion_ccs_words(board: Board, program, words: tuple[str, ...], error: str):
    code, out, err = program(*words)
    assert (code, out) == (1, "")
    assert err.startswith(error)


def test_a_port_that_is_not_ours_never_sees_our_token(board: Board, program, monkeypatch: pytest.MonkeyPatch):
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                heard.append(connection.recv(65536))
                body = b'{"tickets": []}'
                head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
                connection.sendall(head.encode() + body)

        thread = threading.Thread(target=answer)
        thread.start()
        monkeypatch.setenv("LEGION_ORCHESTRATE_PORT", str(listener.getsockname()[1]))
        assert program("status") == (0, "No tickets.\n", "")
        thread.join()
    assert heard[0].startswith(b"GET /legion/orchestrate/status HTTP/1.1\r\n")
    assert b"authorization" not in heard[0].lower()
    assert board.cwd.encode() not in heard[0]
    code, _, err = program("check")
    assert code == 1
    assert err.startswith("Error: failed to connect to orchestrate API: ")


def test_the_control_api_shows_and_changes_the_default_provider(board: Board, server: Served):
    def ask(method: str, path: str, body: object = None) -> object:
        return server.over_socket.line.ask(method, path, body=body)

    assert ask("GET", "/legion/status") == {"target_url": None, "api_format": None, "model": None, "configured": False}
    wanted = {"target_url": "https://relay.example.test", "api_key": "sk-1", "api_format": "anthropic_bearer"}
    assert ask("POST", "/legion/config", wanted) == {"ok": True}
    assert ask("POST", "/legion/config", {"model": "opus"}) == {"ok": True}
    assert ask("GET", "/legion/status") == {
        "target_url": "https://relay.example.test",
        "api_format": "anthropic_bearer",
        "model": "opus",
        "configured": True,
    }
    assert ask("GET", "/legion/providers") == [
        {
            "id": "legion-cc",
            "name": "legion-cc",
            "base_url": "https://relay.example.test",
            "api_format": "anthropic_bearer",
            "models": ["opus"],
            "is_default": True,
        }
    ]


def test_old_commands_lead_to_those_of_today(board: Board, legion):
    for words in (("start", "--port", "18080", "--serve-only"), ("squad", "--workers", "2"), ("--base-port", "18080")):
        ended = legion(*words)
        assert ended.code == 0
        assert "Legion is up." in ended.err
    assert board.service.numbers(board.cwd).workers == 2
    assert "--port has no effect" in legion("start", "--port", "1", "--serve-only").err
    assert "legion provider route set" in legion("switch").err


def test_native_teams_are_shown_as_their_files_say(board: Board, legion, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(Path(__file__).parent / "other_tools/home"))
    shown = legion("native").out
    assert "checkout  Checkout flow" in shown
    assert "team-lead (team-lead), tester (Explore)" in shown
    assert re.search(r"●\s+#2\s+Pay the cart\s+tester\s+after 1", shown)
    assert "is not valid JSON" in shown
    assert legion("native", "nobody").code == 3
