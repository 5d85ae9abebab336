"""legion-dispatch, -check, -status, -stop, -report and -deps, as legion_cc prints them. Every mistake ends with 1."""

from __future__ import annotations

import http.client
import json
import os
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import quote

from legion.client.discovery import find, read_record
from legion.client.http import DaemonAddress
from legion.system.paths import default_data_dir
from legion.wire.errors import LegionError

_TIMEOUT = 60.0
_LONGEST = 10_000_000


class Unreachable(Exception):
    """The message says why, for `Error: failed to connect to orchestrate API: `."""


def request(method: str, path: str, body: object = None, **query: str) -> tuple[int, str]:
    """Status and body of the answer."""
    port = foreign_port()
    try:
        if port is not None:
            return _answered(http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT), method, path, query, body)
        address = find(default_data_dir()).line.address
        ours = _connection(address)
        return _answered(ours, method, path, {**query, "cwd": _cwd()}, body, headers=_headers(address))
    except LegionError as trouble:
        raise Unreachable(trouble.message) from None
    except (OSError, http.client.HTTPException) as trouble:
        raise Unreachable(str(trouble) or type(trouble).__name__) from None


def foreign_port() -> int | None:
    """The port that the caller names, unless our daemon listens on it."""
    named = os.environ.get("LEGION_ORCHESTRATE_PORT", "")
    if not (named.isascii() and named.isdigit() and 0 < int(named) < 65536):
        return None
    record = read_record(default_data_dir())
    return None if record is not None and int(named) in record.ports else int(named)


def _cwd() -> str:
    try:
        return os.getcwd()  # noqa: PTH109  # as a text, for the query
    except FileNotFoundError:
        raise Unreachable("the current folder no longer exists") from None


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_TIMEOUT)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(_TIMEOUT)
        self.sock.connect(self._path)


def _connection(address: DaemonAddress) -> http.client.HTTPConnection:
    if address.socket is not None:
        return _UnixConnection(address.socket)
    return http.client.HTTPConnection(address.host, address.port, timeout=_TIMEOUT)


def _headers(address: DaemonAddress) -> dict[str, str]:
    session = {"Legion-Session": address.session} if address.session else {}
    return {"Authorization": f"Bearer {address.token}", **session}


def _answered(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    query: dict[str, str],
    body: object,
    headers: dict[str, str] | None = None,
) -> tuple[int, str]:
    content = None if body is None else json.dumps(body).encode()
    given = {**(headers or {}), **({"Content-Type": "application/json"} if content is not None else {})}
    asked = "&".join(f"{name}={quote(value, safe='')}" for name, value in query.items())
    try:
        connection.request(method, f"/legion/orchestrate/{path}{f'?{asked}' if asked else ''}", content, given)
        answer = connection.getresponse()
        return answer.status, answer.read(_LONGEST).decode("utf-8", "replace")
    finally:
        connection.close()


_RESULTS = Path("/tmp/legion/results")  # where legion_cc's leader looks
_DISPATCH = (
    'Usage: legion-dispatch <worker_id> [-t "title"] [-c "context"] [-k "criteria"] [--after 1,3] '
    '[--team <team_name>] [--plan "structure plan"] "ticket text"'
)
_EXAMPLE = 'Example: legion-dispatch 1 -t "Add login" -c "Rust project in ./backend" -k "{criteria}" "implement login"'
_OPTIONS = {
    **dict.fromkeys(("-t", "--title"), "title"),
    **dict.fromkeys(("-c", "--context"), "context"),
    **dict.fromkeys(("-k", "--criteria"), "criteria"),
    **dict.fromkeys(("-a", "--after"), "after"),
    "--team": "team",
    **dict.fromkeys(("-p", "--plan"), "plan"),
}
_BADGES = {"done": "OK", "working": "..", "queued": "??", "error": "!!"}
_TITLE, _PROMPT = 40, 47


class _Wrong(Exception):
    """Ends the program with 1 and these lines on stderr."""


def run(name: str, words: list[str]) -> int:
    """The exit code of one of the programs."""
    try:
        _PROGRAMS[name](words)
        sys.stdout.flush()
    except Unreachable as why:
        sys.stderr.write(f"Error: failed to connect to orchestrate API: {why}\n")
        return 1
    except _Wrong as wrong:
        sys.stderr.write(f"{wrong}\n")
        return 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    return 0


def _ask(method: str, path: str, body: object = None, **query: str) -> Any:  # noqa: ANN401 - JSON
    status, text = request(method, path, body, **query)
    if not 200 <= status < 300:
        raise _Wrong(f"Error (HTTP {status}): {text}")
    try:
        return json.loads(text)
    except ValueError as wrong:
        raise _Wrong(f"Error: failed to parse response: {wrong}") from None


def _print(line: str = "") -> None:
    sys.stdout.write(f"{line}\n")


def _whole(word: str) -> int | None:
    return int(word) if word.isascii() and word.isdigit() and int(word) < 65536 else None


def _dispatch(words: list[str]) -> None:
    if len(words) < 2:
        raise _Wrong(_DISPATCH)
    worker = _whole(words[0])
    if worker is None:
        raise _Wrong(f"Error: worker_id must be a number, got '{words[0]}'")
    given, texts, checkpoint = _options(words[1:])
    if not texts:
        raise _Wrong(_DISPATCH)
    if "context" not in given:
        needed = "Error: -c/--context is required. Provide working directory, language, related files, etc."
        raise _Wrong(f"{needed}\n{_EXAMPLE.format(criteria='tests pass')}")
    if "criteria" not in given:
        needed = "Error: -k/--criteria is required. Provide specific, testable success conditions."
        raise _Wrong(f"{needed}\n{_EXAMPLE.format(criteria='POST /login returns JWT, cargo test passes')}")
    text = " ".join(texts)
    body: dict[str, object] = {
        "title": given.get("title") or (f"{text[:_TITLE]}..." if len(text) > _TITLE else text),
        "ticket": text,
        "team_mode": given.get("team", "tech_lead_team"),
        "context": given["context"],
        "criteria": given["criteria"],
    }
    after = [int(word) for word in given.get("after", "").split(",") if word.strip().isdigit()]
    body |= {"blocked_by": after} if after else {}
    body |= {"structure_plan": given["plan"]} if "plan" in given else {}
    body |= {"is_checkpoint": True} if checkpoint else {}
    made = _ask("POST", "submit", body)
    _print(f"Dispatched to worker {worker}: {text}")
    if "team" in given:
        _print(f"Team: {given['team']}")
    if "ticket_id" in made:
        _print(f"Ticket ID: {made['ticket_id']}")


def _options(words: list[str]) -> tuple[dict[str, str], list[str], bool]:
    """Options with their values, the rest, and whether it is a checkpoint. An option at the very end is dropped."""
    given: dict[str, str] = {}
    texts: list[str] = []
    left = iter(words)
    checkpoint = False
    for word in left:
        if word == "--checkpoint":
            checkpoint = True
        elif word in _OPTIONS:
            value = next(left, None)
            if value is not None:
                given[_OPTIONS[word]] = value
        else:
            texts.append(word)
    return given, texts, checkpoint


def _check(_: list[str]) -> None:
    queue = _ask("GET", "status")
    counts = {name: queue.get(name, 0) for name in ("total", "queued", "working", "done", "error")}
    _print("=== Ticket Queue ===")
    _print("  |  ".join(f"{name.capitalize()}: {count}" for name, count in counts.items()))
    _print()
    tickets = queue.get("tickets") or []
    if not tickets:
        _print("No tickets.")
        return
    for state in ("queued", "working", "done", "error"):
        group = [one for one in tickets if one.get("status") == state]
        if group:
            _print(f"--- {state.upper()} ({len(group)}) ---")
            for one in group:
                _print_ticket(one)
            _print()


def _print_ticket(one: dict[str, Any]) -> None:
    prompt = one.get("prompt") or "-"
    shown = one.get("title") or (f"{prompt[:_PROMPT]}..." if len(prompt) > _PROMPT + 3 else prompt)
    worker = one.get("assigned_worker")
    seat = f" worker={worker}" if worker is not None else ""
    _print(f'  [{one.get("id", "?")}] "{shown}"{seat}  ({one.get("elapsed_secs", 0)}s)')
    if one.get("summary"):
        _print(f"         Summary: {one['summary']}")


def _status(_: list[str]) -> None:
    tickets = _ask("GET", "status").get("tickets")
    if not isinstance(tickets, list):
        raise _Wrong("Error: unexpected response format")
    _print(" ".join(map(_badge, tickets)) or "No tickets.")


def _badge(one: dict[str, Any]) -> str:
    worker = one.get("assigned_worker")
    seat = f"W{worker}" if worker is not None else f"#{one.get('id', 0)}"
    return f"{seat}[{_BADGES.get(one.get('status', ''), '??')}]"


def _stop(words: list[str]) -> None:
    if not words:
        raise _Wrong("Usage: legion-stop <worker_id|all>")
    if words[0] == "all":
        _ask("POST", "stop-all", {})
        _print("All workers stopped")
        return
    worker = _whole(words[0])
    if worker is None:
        raise _Wrong(f"Error: argument must be a worker_id (number) or 'all', got '{words[0]}'")
    _ask("POST", "stop", {"worker_id": worker})
    _print(f"Worker {worker} stopped")


def _worker() -> int:
    return _whole(os.environ.get("LEGION_WORKER_ID", "0")) or 0


def _report(words: list[str]) -> None:
    if not words:
        raise _Wrong('Usage: legion-report <done|error> ["summary text"]')
    if words[0] not in ("done", "error"):
        raise _Wrong(f"Error: status must be 'done' or 'error', got '{words[0]}'")
    worker, summary = _worker(), " ".join(words[1:])
    said = {"summary": summary} if summary else {}
    _ask("POST", "report", {"worker_id": worker, "status": words[0], **said})
    _print(f"Worker {worker} reported: {words[0]}{f' - {summary}' if summary else ''}")
    _write_result(worker, words[0], summary or "(no summary)")


def _write_result(worker: int, status: str, summary: str) -> None:
    """The folder is shared by all users of the machine: a link that another one made there is not followed."""
    path = _RESULTS / f"worker-{worker}.md"
    head = f"---\nworker_id: {worker}\nstatus: {status}\ntimestamp: {int(time.time())}\n---\n"
    try:
        _RESULTS.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(f"{head}\n# Worker {worker} Result\n\n{summary}\n")
    except OSError as trouble:
        sys.stderr.write(f"Warning: could not write {path}: {trouble.strerror}\n")
        return
    _print(f"Result written to {path}")


def _deps(words: list[str]) -> None:
    ticket = _whole(words[0]) if words else None
    found = _ask("GET", "deps", ticket_id=str(ticket if ticket is not None else _active_ticket()))
    _print(json.dumps(found, indent=2, ensure_ascii=False))


def _active_ticket() -> int:
    worker = _worker()
    for one in _ask("GET", "status").get("tickets") or []:
        if one.get("assigned_worker") == worker and one.get("status") == "working":
            return int(one.get("id", 0))
    raise _Wrong(f"Error: no active ticket found for worker {worker}")


_PROGRAMS: dict[str, Callable[[list[str]], None]] = {
    "dispatch": _dispatch,
    "check": _check,
    "status": _status,
    "stop": _stop,
    "report": _report,
    "deps": _deps,
}


def dispatch() -> NoReturn:
    sys.exit(run("dispatch", sys.argv[1:]))


def check() -> NoReturn:
    sys.exit(run("check", sys.argv[1:]))


def status() -> NoReturn:
    sys.exit(run("status", sys.argv[1:]))


def stop() -> NoReturn:
    sys.exit(run("stop", sys.argv[1:]))


def report() -> NoReturn:
    sys.exit(run("report", sys.argv[1:]))


def deps() -> NoReturn:
    sys.exit(run("deps", sys.argv[1:]))
