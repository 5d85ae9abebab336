"""The WebSockets of the page: events and output, for the person's browsers only."""

from __future__ import annotations

import json

import pytest
from websockets.exceptions import InvalidStatus

from legion.wire.web import RevokeDevice
from tests.api.serving import Served
from tests.api.test_devices import let_in
from tests.api.test_guard import BEARER
from tests.api.test_orchestra import PATIENCE, close_code, opened

PATHS = ("/ws/events", "/ws/output")


def test_events_come_in_order_behind_the_number_and_as_they_happen(served: Served):
    base = served.board.last_event
    served.board.happen(None, 7)
    with opened(served, BEARER, f"/ws/events?after={base + 1}") as line:
        assert json.loads(line.recv(PATIENCE)) == [], "a sign of life, before anything happens"
        (event,) = json.loads(line.recv(PATIENCE))
        assert (event["n"], event["kind"], event["ticket"]) == (base + 2, "ticket.reported", 7)
        served.board.happen(8)
        (event,) = json.loads(line.recv(PATIENCE))
        assert event["ticket"] == 8


def test_each_request_for_output_is_answered(served: Served):
    served.board.put(1, "First", "working")
    served.board.run(1, "Reading\n", ended=False)
    with opened(served, BEARER, "/ws/output") as line:
        for _ in range(2):
            line.send(json.dumps({"ticket": 1}))
            answer = json.loads(line.recv(PATIENCE))
            assert [(one["ticket"], one["agent"]) for one in answer["running"]] == [(1, "")]
            assert [one["text"] for one in answer["pieces"]] == ["Reading\n"]


@pytest.mark.parametrize("sent", ["", "[]", '{"seen": {"1": "x"}}', '{"later": 1}', '{"cwd": "\\u0000"}'])
def test_what_is_no_request_for_output_ends_the_socket(served: Served, sent: str):
    with opened(served, BEARER, "/ws/output") as line:
        line.send(sent)
        assert close_code(line) == 1008


@pytest.mark.parametrize("path", PATHS)
def test_only_the_own_page_of_a_browser_that_is_let_in_opens_one(served: Served, path: str):
    secret, own = let_in(served), {"Origin": f"http://127.0.0.1:{served.port}"}
    cookie = {"Cookie": f"legion-{served.port}={secret['Legion-Device']}"}
    _, token = served.board.token_of_agent()
    foreign, marked = {**secret, "Origin": "https://evil.example"}, {**secret, **own, "Sec-Fetch-Site": "cross-site"}
    for headers in (own, secret, foreign, marked, {**own, **cookie}, {"Authorization": f"Bearer {token}"}):
        with pytest.raises(InvalidStatus), opened(served, headers, path):
            pass
    with opened(served, {**secret, **own}, path) as line:
        assert line.subprotocol == "legion"
        served.over_socket.revoke_device(RevokeDevice())
        served.board.put(1, "First", "working")
        served.board.run(1, "Reading\n", ended=False)
        served.board.happen(1)
        if path == "/ws/output":
            line.send("{}")
        assert close_code(line) == 1008


def test_a_number_that_is_none_is_refused(served: Served):
    # More digits than Python reads are no mistake of ours either.
    for given in ("x", "-1", "+1", "1.0", "%201", "1_0", "%C2%B2", "0x1", str(2**63), "9" * 5000):
        with pytest.raises(InvalidStatus) as refused, opened(served, BEARER, f"/ws/events?after={given}"):
            pass
        assert refused.value.response.status_code == 403, given
