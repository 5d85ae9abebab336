"""Which browsers may open a terminal on the page, and which may only look."""

from __future__ import annotations

import asyncio
import json
from functools import partial

import pytest
from websockets.exceptions import InvalidStatus

from legion.api import devices, terminals
from legion.api.events import HEARTBEAT
from legion.api.quota import Waiters
from legion.domain.devices import Device
from legion.wire.web import RevokeDevice
from tests.api.serving import Served
from tests.api.test_devices import let_in
from tests.api.test_guard import BEARER
from tests.api.test_orchestra import PATIENCE, close_code, opened

AGENT, SHELL, LOOK = (f"/ws/tickets/1/terminal?{query}" for query in ("kind=agent", "kind=shell", "only_looks=1"))


def page_of(served: Served, *, read_only: bool) -> dict[str, str]:
    return {
        **let_in(served, read_only=read_only),
        "Origin": f"http://127.0.0.1:{served.port}",
        "Sec-Fetch-Site": "same-origin",
    }


@pytest.mark.parametrize("path", [AGENT, SHELL], ids=["agent", "shell"])
def test_a_read_only_device_cannot_type(served: Served, path: str):
    served.board.put(1, state="working")
    with opened(served, page_of(served, read_only=True), path) as line:
        notice = json.loads(line.recv(PATIENCE))
        assert notice["news"] == "refused"
        assert "may only look" in notice["message"]
        assert close_code(line) == 1000
    with opened(served, page_of(served, read_only=True), LOOK) as line:
        assert json.loads(line.recv(PATIENCE))["news"] == "none"


def test_a_foreign_page_an_agent_and_a_browser_without_origin_open_no_terminal(served: Served):
    served.board.put(1, state="working")
    secret = let_in(served)
    _, token = served.board.token_of_agent()
    foreign = {**secret, "Origin": "https://evil.example"}
    for headers in ({}, secret, foreign, {"Authorization": f"Bearer {token}"}):
        for path in (AGENT, SHELL, LOOK):
            with pytest.raises(InvalidStatus), opened(served, headers, path):
                pass


def test_a_device_that_is_shut_out_loses_its_terminal(served: Served):
    served.board.put(1, state="working")
    with opened(served, page_of(served, read_only=False), AGENT) as line:
        served.over_socket.revoke_device(RevokeDevice())
        assert close_code(line) == 1008


def test_a_device_that_is_shut_out_right_after_it_was_checked_loses_its_terminal_too(served: Served):
    let_in(served)
    checks = 0

    def still_in() -> bool:
        nonlocal checks
        checks += 1
        if checks == 1:
            served.over_socket.revoke_device(RevokeDevice())
        return checks == 1

    watching = terminals.until_shut_out(still_in, served.board.service, partial(Waiters().run, "root"))
    asyncio.run(asyncio.wait_for(watching, HEARTBEAT / 2))


@pytest.mark.parametrize("size", ["", "%C2%B2", "+80", "9" * 5000], ids=["none", "superscript", "sign", "long"])
def test_an_unknown_ticket_is_refused_whatever_size_is_named(served: Served, size: str):
    with opened(served, BEARER, f"{AGENT}&columns={size}&rows=24") as line:
        notices = [json.loads(line.recv(PATIENCE)) for _ in range(2)]
        assert [one["news"] for one in notices] == ["waiting", "refused"]
        assert "1" in notices[-1]["message"]


@pytest.mark.parametrize(
    ("host", "scheme", "may"),
    [("127.0.0.1:6670", "ws", True), ("192.168.1.5:6680", "ws", False), ("192.168.1.5:6680", "wss", True)],
    ids=["this-machine", "plain-network", "encrypted"],
)
def test_what_is_typed_does_not_cross_a_plain_network(host: str, scheme: str, may: bool):
    device = Device(id=1, name="", host=host, read_only=False, made_at=0.0, seen_at=None, revoked_at=None)
    scope = {devices.DEVICE: device, "scheme": scheme}
    assert (devices.terminal_fault(scope, only_looks=False) == "") is may
    assert devices.terminal_fault(scope, only_looks=True) == ""
