"""Finding the daemon, starting it, ending it: with the real one."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TextIO

import pytest

from legion import __version__
from legion.wire.errors import BadInput, LegionError, NotFound, problem_of
from tests.api.serving import TOKEN, Served
from tests.support.attacks import Attacker, Door, attack
from tests.support.board import Board
from tests.support.codebase import SOURCE
from tests.support.warm import Forked, warm

PACKAGES = SOURCE.parent


@pytest.fixture
def alone(short_folder: Path) -> Iterator[dict[str, str]]:
    """The environment of a person with nothing running; what was started is ended."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LEGION_")}
    env = {
        **kept,
        "PYTHONPATH": str(PACKAGES),
        "LEGION_DATA_DIR": str(short_folder / "data"),
        "LEGION_CONFIG": str(short_folder / "config.toml"),
        "COLUMNS": "200",
    }
    (short_folder / "config.toml").write_text("[daemon]\nport = 21666\n")
    yield env
    if (short_folder / "data" / "daemon.json").exists():
        legion(env, "down")


def legion(env: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """A command for a daemon that runs, or that need not."""
    return warm(PACKAGES).run("legion", words, env, Path("/"), stdin="", patience=100)


def from_nothing(env: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """A command as a shell starts it, with the daemon that it starts."""
    argv = [sys.executable, "-m", "legion", *words]
    return subprocess.run(argv, env=env, cwd="/", capture_output=True, text=True, timeout=100, check=False)


@contextlib.contextmanager
def serving(env: dict[str, str], *words: str) -> Iterator[tuple[Forked, TextIO]]:
    """`legion serve` in the foreground, and its output."""
    reading, writing = os.pipe()
    words = ("serve", "--port", "0", *words)
    process = warm(PACKAGES).start("legion", words, env, Path("/"), {1: writing})
    os.close(writing)
    with os.fdopen(reading) as output:
        try:
            yield process, output
        finally:
            process.kill()
            process.wait()


def test_many_who_ask_at_once_start_one_daemon_and_it_goes_down_again(alone: dict[str, str]):
    with ThreadPoolExecutor() as pool:
        ended = list(pool.map(lambda _: from_nothing(alone, "status", "--json"), range(3)))
    assert [one.stderr.replace("Starting Legion ...\n", "") for one in ended] == [""] * 3
    assert len({json.loads(one.stdout)["daemon"]["pid"] for one in ended}) == 1
    log = Path(alone["LEGION_DATA_DIR"], "daemon.log").read_text()
    assert "Another" not in log, "nobody else was started in vain"
    again = json.loads(legion(alone, "up", "--json").stdout)
    assert again["started"] is False
    token = Path(again["token_file"])
    assert token.stat().st_mode & 0o777 == 0o600
    others_see = [path.name for path in token.parent.iterdir() if path.stat().st_mode & 0o077]
    assert others_see == []
    shown = legion(alone, "up")
    assert token.read_text().strip() not in shown.stdout + shown.stderr + log
    assert str(token) in shown.stderr
    second = legion(alone, "serve", "--port", "0")
    assert second.returncode == 5
    assert "another" in second.stderr.lower()
    process = os.pidfd_open(again["pid"])
    assert legion(alone, "down").stdout == "Legion is down.\n"
    assert select.select([process], [], [], 20)[0], "it goes on although it is down"
    os.close(process)
    assert legion(alone, "down").stdout == "Legion was not running.\n"


def test_in_the_foreground_json_is_one_line_when_it_answers_and_a_problem_when_it_cannot(alone: dict[str, str]):
    with serving(alone, "--json") as (served, output):
        said = json.loads(output.readline())
        up = json.loads(legion(alone, "up", "--json").stdout)
        second = legion(alone, "serve", "--port", "0", "--json")
        served.send_signal(signal.SIGTERM)
        rest = output.read()
        assert (rest, served.wait(60)) == ("", 0)
    assert said == {**up, "started": True}
    assert said["pid"] == served.pid
    problem = json.loads(second.stdout)
    assert (problem["schema"], problem["exit_code"], second.returncode) == ("legion.problem/1", 5, 5)


def test_in_the_foreground_the_file_of_the_token_is_printed_and_the_token_is_not(alone: dict[str, str]):
    with serving(alone) as (_, output):
        lines = [output.readline() for _ in range(3)]
    file = Path(alone["LEGION_DATA_DIR"], "token")
    assert lines[2].startswith("Ready at ")
    assert str(file) in lines[2]
    assert len(file.read_text()) > 30
    assert file.read_text().strip() not in "".join(lines)


def test_of_three_that_serve_at_the_same_instant_one_wins_and_the_others_say_so(alone: dict[str, str]):
    with contextlib.ExitStack() as open_ones:
        started = [open_ones.enter_context(serving(alone, "--json")) for _ in range(3)]
        lines = [json.loads(output.readline()) for _, output in started]
        processes = [process for process, _ in started]
        won = [one for one, line in zip(processes, lines, strict=True) if line["schema"] == "legion.daemon/1"]
        lost = [one for one in processes if one not in won]
        assert len(won) == 1
        assert [one.wait(60) for one in lost] == [5, 5]
        assert [line["code"] for line in lines if line["schema"] == "legion.problem/1"] == ["conflict"] * 2
        assert all("Another Legion daemon already serves" in line["message"] for line in lines if "message" in line)
        up = json.loads(legion(alone, "up", "--json").stdout)
        assert (up["pid"], up["started"]) == (won[0].pid, False), "the losers have damaged nothing"
        won[0].send_signal(signal.SIGTERM)
        assert won[0].wait(60) == 0


def test_a_daemon_that_cannot_start_says_why_and_doctor_lists_it(alone: dict[str, str]):
    Path(alone["LEGION_CONFIG"]).write_text("[daemon\n")
    ended = legion(alone, "up")
    assert ended.returncode == 2
    assert alone["LEGION_CONFIG"] in ended.stderr
    assert "Traceback" not in ended.stderr
    looked = legion({**alone, "COLUMNS": "60"}, "doctor")
    assert looked.returncode == 1
    assert "daemon:" in looked.stdout
    assert "config.toml" in looked.stdout
    for word in ended.stderr.splitlines()[-1].split():
        assert word in looked.stdout, "whole, however long it is"


def test_a_record_of_a_dead_daemon_is_no_obstacle(alone: dict[str, str]):
    data = Path(alone["LEGION_DATA_DIR"])
    data.mkdir()
    (data / "token").write_text("old\n")
    dead = {"pid": 1, "url": "http://127.0.0.1:9", "socket": str(data / "api.sock"), "version": "0.0.1"}
    (data / "daemon.json").write_text(json.dumps(dead))
    ended = legion(alone, "up", "--json")
    assert json.loads(ended.stdout)["started"] is True
    # A living one without a record still goes down: `legion up` would refuse to start another.
    for lost in ("daemon.json", "token"):
        (data / lost).unlink()
    assert legion(alone, "down").stdout == "Legion is down.\n"
    assert legion(alone, "down").stdout == "Legion was not running.\n"


def test_a_data_directory_that_is_a_file_is_refused(alone: dict[str, str], tmp_path: Path):
    (tmp_path / "file").write_text("")
    ended = legion(alone, "status", "--data-dir", str(tmp_path / "file"))
    assert ended.returncode in (2, 4)
    assert ended.stderr.count("\n") == 1


def test_a_named_daemon_is_asked_with_its_token(legion, server: Served, board: Board, monkeypatch, tmp_path):
    monkeypatch.setenv("LEGION_DATA_DIR", str(tmp_path / "empty"))
    monkeypatch.setenv("LEGION_URL", f"http://127.0.0.1:{server.port}")
    monkeypatch.setenv("LEGION_TOKEN", TOKEN)
    assert legion("status").code == 0
    monkeypatch.setenv("LEGION_TOKEN", "wrong")
    assert legion("status").code == 4


@pytest.mark.parametrize(
    ("url", "code", "said"),
    [
        ("http://legion.example:6666", 4, "LEGION_TOKEN"),
        ("nonsense", 2, "http://127.0.0.1:6666"),
        ("ftp://127.0.0.1", 2, "http://127.0.0.1:6666"),
        ("http://127.0.0.1:99999", 2, "http://127.0.0.1:6666"),
        ("http://127.0.0.1:9", 4, "LEGION_URL names port 9, and the daemon of"),
    ],
)
def test_a_bad_address_is_said(legion, board: Board, monkeypatch, url, code, said):
    monkeypatch.setenv("LEGION_URL", url)
    ended = legion("status")
    assert (ended.code, ended.out) == (code, "")
    assert said in ended.err


def test_a_daemon_that_is_named_with_its_token_and_does_not_answer_is_said(legion, board: Board, monkeypatch):
    monkeypatch.setenv("LEGION_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("LEGION_TOKEN", "theirs")
    ended = legion("status")
    assert (ended.code, ended.out) == (75, "")
    assert "Nothing answers at http://127.0.0.1:9, which LEGION_URL names" in ended.err


def test_the_own_daemon_is_named_without_a_token(legion, board: Board, server: Served, monkeypatch):
    monkeypatch.setenv("LEGION_URL", f"http://localhost:{server.port}")
    assert legion("status").code == 0


def test_the_own_token_is_never_sent_to_another_machine(legion, board: Board, monkeypatch):
    monkeypatch.setenv("LEGION_URL", "http://192.0.2.1:6666")
    ended = legion("status")
    assert ended.code == 4
    assert "LEGION_TOKEN" in ended.err


def error_body(kind: type[LegionError], sentence: str) -> bytes:
    return json.dumps(vars(problem_of(kind(sentence)))).encode()


@pytest.fixture
def stranger() -> Iterator[tuple[int, dict[str, str]]]:
    """A web server that is always healthy and says so to every question, with these headers; it knows no inbox."""
    headers: dict[str, str] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/v1/inbox":
                self._reply(
                    404, error_body(NotFound, "There is no GET /v1/inbox; /v1/openapi.json lists what there is.")
                )
            else:
                self._reply(200, b'{"status": "healthy"}')

        def do_POST(self) -> None:
            said = "`tickets[0].ask` is not a field of this request; /v1/openapi.json lists its fields."
            self._reply(422, error_body(BadInput, said))

        def _reply(self, status: int, body: bytes) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port, headers
        server.shutdown()
        thread.join()


@attack(Attacker.LOCAL_USER, Door.SECRETS)
def test_the_token_goes_to_no_port_where_no_daemon_is_recorded(legion, board: Board, stranger, monkeypatch):
    """Whatever listens there could be another user's."""
    kept = board.data.daemon_record.read_bytes()
    board.data.daemon_record.unlink()
    monkeypatch.setenv("LEGION_URL", f"http://127.0.0.1:{stranger[0]}")
    try:
        ended = legion("status")
    finally:
        board.data.daemon_record.write_bytes(kept)
    assert ended.code == 75
    assert "unset LEGION_URL" in ended.err


def test_what_answers_but_is_not_legion_is_said(legion, board: Board, stranger, monkeypatch):
    monkeypatch.setenv("LEGION_URL", f"http://127.0.0.1:{stranger[0]}")
    monkeypatch.setenv("LEGION_TOKEN", "theirs")
    ended = legion("status")
    assert ended.code == 1
    assert "is not Legion" in ended.err


def test_another_version_is_mentioned_and_nonsense_from_it_is_explained(legion, board: Board, stranger, monkeypatch):
    monkeypatch.setenv("LEGION_URL", f"http://127.0.0.1:{stranger[0]}")
    monkeypatch.setenv("LEGION_TOKEN", "theirs")
    stranger[1]["Legion-Version"] = "9.9.9"
    ended = legion("status")
    assert ended.code == 1
    assert "the daemon is version 9.9.9" in ended.err
    assert f"The daemon is newer (9.9.9) than this program ({__version__}): update the program." in ended.err


@pytest.mark.parametrize("words", [("status",), ("inbox",), ("dispatch", "--ask", "-t", "a", "text")])
def test_what_an_older_daemon_does_not_know_is_put_down_to_its_age(legion, board: Board, stranger, monkeypatch, words):
    monkeypatch.setenv("LEGION_URL", f"http://127.0.0.1:{stranger[0]}")
    monkeypatch.setenv("LEGION_TOKEN", "theirs")
    stranger[1]["Legion-Version"] = "0.1.0"
    ended = legion(*words)
    assert (ended.code, ended.out) == (1, "")
    older = f"The daemon is older (0.1.0) than this program ({__version__}): run `legion down`, then `legion up`."
    assert ended.err.splitlines()[-1] == older
    # Of a daemon of our own version it is our mistake, and said as it is.
    stranger[1]["Legion-Version"] = __version__
    assert "is older" not in legion(*words).err
