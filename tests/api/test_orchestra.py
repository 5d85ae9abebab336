"""The API of claude-orchestra: its routes and shapes, and its WebSocket, which only the person may open."""

from __future__ import annotations

import json
import socket
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from legion.wire.dispatch import Dispatch, NewTicket
from legion.wire.projects import Where
from tests.api.serving import Served
from tests.api.test_devices import let_in
from tests.api.test_guard import BEARER, ask
from tests.conversations.home import CLAUDE, GEMINI, Home

PATIENCE = 20.0


def get(served: Served, path: str, headers: dict[str, str] = BEARER):
    answer, content = ask(served, path, headers)
    assert answer.status == 200, content
    return content


def post(served: Served, path: str, body: object = None, headers: dict[str, str] = BEARER):
    given = {**headers, "Content-Type": "application/json"}
    return ask(served, path, given, "POST", json.dumps(body).encode() if body is not None else b"")


def test_tasks_become_tickets_that_are_paused_resumed_and_cleaned_up(served: Served):
    answer, made = post(served, "/api/spawn", {"tasks": ["Add a login form", "Fix " * 40], "parallel": 2})
    assert (answer.status, made["spawned"]) == (200, 2)
    first, second = made["agents"]
    assert (first["agent_id"], first["task"]) == ("00000001", "Add a login form")
    assert first["worktree"].endswith("/ticket-1")
    seen = get(served, "/api/status")
    assert {name: seen[name] for name in ("total", "running", "completed", "failed", "stale")} == {
        "total": 2,
        "running": 0,
        "completed": 0,
        "failed": 0,
        "stale": 0,
    }
    assert seen["agents"][0] == {
        "agent_id": "00000001",
        "session_id": "",
        "worktree_path": None,
        "task": "Add a login form",
        "status": "pending",
        "started_at": None,
        "last_heartbeat": seen["agents"][0]["last_heartbeat"],
        "progress": 0,
        "current_activity": seen["agents"][0]["current_activity"],
        "error_message": None,
        "result": None,
    }
    assert post(served, f"/api/agents/{second['agent_id']}/pause")[1] == {"success": True, "error": None}
    assert [one["status"] for one in get(served, "/api/status")["agents"]] == ["pending", "paused"]
    assert post(served, f"/api/agents/{second['agent_id']}/resume")[1]["success"] is True
    refused = post(served, f"/api/agents/{second['agent_id']}/resume")[1]
    assert (refused["success"], "not paused" in refused["error"]) == (False, True)
    assert post(served, "/api/cleanup")[1] == {"cleaned": 0}
    assert post(served, "/api/cleanup?all_agents=true")[1] == {"cleaned": 2}
    assert get(served, "/api/status")["total"] == 0
    assert get(served, "/api/worktrees") == []


def test_the_status_counts_all_tickets_and_lists_no_endless_history(served: Served):
    post(served, "/api/spawn", {"tasks": [f"Task {number}" for number in range(60)]})
    served.over_tcp.stop_all(Where(cwd=served.board.cwd))
    post(served, "/api/spawn", {"tasks": ["Go on"]})
    for path, listed in (("/api/status", "agents"), ("/legion/orchestrate/status", "tickets")):
        seen = get(served, path)
        assert (seen["total"], len(seen[listed])) == (61, 51)
        assert seen.get("failed", seen.get("error")) == 60


@pytest.mark.parametrize(
    ("path", "body", "status", "detail"),
    [
        ("/api/spawn", {"tasks": []}, 400, "Name at least one task"),
        ("/api/spawn", {"tasks": [" "]}, 400, "Name at least one task"),
        ("/api/spawn", {"tasks": ["x"], "use_worktrees": False}, 400, "always works in a worktree of its own"),
        ("/api/spawn", {"tasks": ["x"], "parallel": 0}, 400, "from 1 to 1024"),
        ("/api/agents/ffffffff/pause", None, 404, "There is no agent 'ffffffff'"),
        ("/api/agents/nobody/resume", None, 404, "There is no agent 'nobody'"),
        ("/api/cleanup?cwd=/", None, 404, "is in no Legion project"),
    ],
    ids=["no-task", "empty-task", "no-worktree", "no-places", "unknown", "no-id", "no-project"],
)
def test_what_is_refused_is_one_sentence(served: Served, path: str, body: object, status: int, detail: str):
    answer, content = post(served, path, body)
    assert answer.status == status
    assert detail in content["detail"]


def test_sessions_have_the_old_shape(served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(Home(tmp_path / "home").fill().root))
    found = get(served, "/api/sessions?hours=100000")
    assert next(one["session_id"] for one in found) == GEMINI
    assert next(one for one in found if one["session_id"] == CLAUDE) == {
        "session_id": CLAUDE,
        "project_path": "/home/ada/shop",
        "modified_at": "2026-11-16T12:52:12.091000+00:00",
        "message_count": 3,
        "last_prompt": "rehearsal: work. Please look at the file",
    }
    assert get(served, "/api/sessions?hours=0.001") == []


def test_only_the_person_may_call(served: Served):
    for path in ("/api/status", "/api/sessions", "/api/worktrees"):
        assert ask(served, path, {})[0].status == 401
        _, token = served.board.token_of_agent()
        assert ask(served, path, {"Authorization": f"Bearer {token}"})[0].status == 403
    for browser in (let_in(served), let_in(served, read_only=True)):
        assert ask(served, "/api/status", browser)[0].status == 403
        assert post(served, "/api/spawn", {"tasks": ["x"]}, browser)[0].status == 403


Opened = AbstractContextManager[ClientConnection]


def opened(served: Served, headers: dict[str, str], path: str = "/ws/status", host: str = "127.0.0.1") -> Opened:
    """A `Legion-Device` is sent as the page's WebSockets do it."""
    wire = socket.create_connection(("127.0.0.1", served.port))
    url = f"ws://{host}:{served.port}{path}"
    secret = headers.get("Legion-Device")
    return connect(
        url,
        sock=wire,
        additional_headers={name: value for name, value in headers.items() if name != "Legion-Device"},
        subprotocols=[Subprotocol("legion"), Subprotocol(secret)] if secret else None,
        proxy=None,
        open_timeout=PATIENCE,
    )


def close_code(connection: ClientConnection) -> int | None:
    """How the server ended it."""
    try:
        while True:
            connection.recv(PATIENCE)
    except ConnectionClosed as closed:
        return closed.rcvd.code if closed.rcvd is not None else None


def test_the_socket_sends_the_status_at_once_and_after_a_change(served: Served):
    with opened(served, BEARER) as line:
        assert json.loads(line.recv(PATIENCE))["total"] == 0
        line.send("whatever")
        served.over_socket.dispatch(Dispatch(cwd=served.board.cwd, tickets=[NewTicket(title="New")]))
        while (seen := json.loads(line.recv(PATIENCE)))["total"] == 0:
            pass
        assert seen["agents"][0]["task"] == "New"
        again = json.loads(line.recv(PATIENCE))
        assert again["total"] == 1, "without a change, too"


@pytest.mark.parametrize(
    ("headers", "host"),
    [
        ({}, "127.0.0.1"),
        ({**BEARER, "Origin": "https://evil.example"}, "127.0.0.1"),
        ({**BEARER, "Origin": "null"}, "127.0.0.1"),
        (BEARER, "evil.example"),
        ({"Authorization": "Bearer wrong"}, "127.0.0.1"),
    ],
    ids=["no-token", "foreign-page", "no-page", "foreign-host", "wrong-token"],
)
def test_a_foreign_socket_is_refused(served: Served, headers: dict[str, str], host: str):
    with pytest.raises(InvalidStatus) as refused, opened(served, headers, host=host):
        pass
    assert refused.value.response.status_code == 403


def test_an_agent_gets_no_socket_and_there_is_no_other(served: Served):
    _, token = served.board.token_of_agent()
    with pytest.raises(InvalidStatus), opened(served, {"Authorization": f"Bearer {token}"}):
        pass
    with pytest.raises(InvalidStatus), opened(served, BEARER, "/ws/other"):
        pass
