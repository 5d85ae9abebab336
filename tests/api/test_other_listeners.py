"""Who may call what at the listeners that are not the daemon's own: gateway, relay, and the routes for machines.

Their tables are walked as those of the daemon are, with the same odd spellings. tests/gateway and tests/machines try
samples of it over real connections.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from starlette.routing import compile_path

from legion.api import machines
from legion.api.machines import MachineIdentity, MachineRoute
from legion.domain.agents.tools import Tool
from legion.gateway.access.admission import ROUTES, Refused, route_of
from legion.jobs.machines.travel import RelayDoor
from legion.service.machines.dial_in import DialIn
from tests.machines.heads import Head
from tests.support.attacks import Attacker, Door, attack
from tests.support.spellings import NUMBERS, PATHS

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
GATEWAY = {one.path.format(model="gemini-2.5-pro", name="claude-x"): one for one in ROUTES}
TOOLS = [f"/v1/tools/{one.value}" for one in Tool]


def answered(method: str, path: str) -> bool:
    try:
        route_of(method, path)
    except Refused:
        return False
    return True


@attack(Attacker.AGENT, Door.RIGHTS)
def test_gateway_and_relay_answer_what_their_tables_have_and_nothing_else():
    for path, row in GATEWAY.items():
        for method in METHODS:
            assert answered(method, path) is (method in row.methods)
            assert RelayDoor.GATEWAY.opens(method, path) is (method in row.methods and row.needs_pass)
            assert not RelayDoor.TOOLS.opens(method, path)
    for path in TOOLS:
        assert [method for method in METHODS if RelayDoor.TOOLS.opens(method, path)] == ["POST"]
        assert not any(answered(method, path) for method in METHODS)


@attack(Attacker.AGENT, Door.PATHS)
@pytest.mark.parametrize("spelling", PATHS)
def test_gateway_and_relay_know_one_spelling_of_a_path(spelling: str):
    for path in (*GATEWAY, *TOOLS):
        raw, decoded = PATHS[spelling](path)
        for odd in {raw, decoded} - {path, *GATEWAY, *TOOLS}:
            for method in METHODS:
                assert not answered(method, odd), odd
                assert not any(door.opens(method, odd) for door in RelayDoor), odd


class MachineDoor:
    """The routes for machines without TLS, and a machine of theirs."""

    def __init__(self, head: Head) -> None:
        self._app = machines.make_machine_app(DialIn(head.board.context), authority=str)
        self._runner = asyncio.Runner()
        self.token = head.machine("desk").token
        self.agents = head.board.token_of_agent()[1]

    def close(self) -> None:
        self._runner.close()

    def ask(self, method: str, raw: str, path: str, headers: Mapping[str, str]) -> int:
        messages: list[Mapping[str, Any]] = [{"type": "http.request", "body": b"{}", "more_body": False}]
        sent: list[Mapping[str, Any]] = []
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": raw.encode(),
            "query_string": b"",
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }

        async def receive() -> Mapping[str, Any]:
            return messages.pop() if messages else {"type": "http.disconnect"}

        async def send(message: Mapping[str, Any]) -> None:
            sent.append(message)

        self._runner.run(self._app(scope, receive, send))  # type: ignore[arg-type]  # its own type of messages
        return int(sent[0]["status"])


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MachineDoor]:
    head = Head(tmp_path_factory.mktemp("machines"))
    made = MachineDoor(head)
    yield made
    made.close()
    head.close()


def label(row: MachineRoute) -> str:
    return f"{row.method} {row.path}"


def concrete(row: MachineRoute, number: str = "1") -> str:
    path = re.sub(r"{\w+:number}", number.replace("\\", r"\\"), row.path)
    path = path.replace("{path:path}", "v1/messages").replace("{run}", "ticket-1-run-1").replace("{file}", "journal")
    return f"{machines.PREFIX}{path}"


@attack(Attacker.NETWORK, Door.RIGHTS)
@pytest.mark.parametrize("row", machines.ROUTES, ids=label)
def test_a_route_for_machines_lets_in_those_of_its_row_and_nobody_else(door: MachineDoor, row: MachineRoute):
    path = concrete(row)
    strangers: tuple[dict[str, str], ...] = (
        {},
        {"legion-machine": "wrong"},
        {"legion-machine": door.agents},
        {"legion-machine": door.token[:-1]},
        {"authorization": f"Bearer {door.token}"},
        {"cookie": f"legion-machine={door.token}"},
    )
    for headers in strangers:
        status = door.ask(row.method, path, path, headers)
        match row.identity:
            case MachineIdentity.NONE:
                assert status == 200
            case MachineIdentity.INVITED:
                assert status in (401, 422), "its code is in the body"
            case MachineIdentity.MACHINE:
                assert status == 401
    assert door.ask(row.method, path, path, {"legion-machine": door.token}) not in (401, 404, 405)
    patterns = {one: compile_path(f"{machines.PREFIX}{one.path}")[0] for one in machines.ROUTES}
    taken = {one.method for one, pattern in patterns.items() if pattern.match(path)} | {"HEAD"}
    for method in set(METHODS) - taken:
        assert door.ask(method, path, path, {"legion-machine": door.token}) in (401, 405)


@attack(Attacker.MACHINE, Door.PATHS)
@pytest.mark.parametrize("row", machines.ROUTES, ids=label)
def test_a_route_for_machines_has_one_spelling(door: MachineDoor, row: MachineRoute):
    own = {"legion-machine": door.token}
    odd = [PATHS[one](concrete(row)) for one in PATHS]
    if ":number}" in row.path:
        # A generation starts at 0.
        odd += [(concrete(row, raw), concrete(row, text)) for one, (raw, text) in NUMBERS.items() if one != "zero"]
    for raw, decoded in odd:
        assert door.ask(row.method, raw, decoded, own) in (404, 405), raw
