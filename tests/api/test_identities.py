"""Who may call what: every route of the daemon with every identity, in every spelling, against its row.

The guard stands before an app that only notes what reached it. So nothing is done, and every route can be tried.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from starlette.routing import Route, WebSocketRoute

from legion.api import app as api
from legion.api.guard import Guard
from legion.api.routes import GuardedRoute, RouteTable
from legion.service.entry.callers import PLUGIN_PREFIX
from legion.wire.operations import OPERATIONS
from legion.wire.orchestrate import OrchestrateOperations
from legion.wire.table import IDENTITIES, OpenTo, operation, rows
from legion.wire.web import OfferDevice
from tests.support.attacks import Attacker, Door, attack
from tests.support.board import Board
from tests.support.spellings import NUMBERS, PATHS

PORT = 6670
HOME, AWAY = f"127.0.0.1:{PORT}", f"192.168.1.5:{PORT}"
TOKEN = "a-token-for-tests"
PERSON = OpenTo.PERSON
PLAIN_READER = OpenTo.READ_ONLY | OpenTo.LIMITED
"""A read-only browser over a plain network."""
CALLERS = (PERSON, PLAIN_READER, *IDENTITIES)
REACHED = 299
TABLE = api.table(None, None)  # type: ignore[arg-type]  # nothing is called
ENTRIES = TABLE.entries


def label(entry: GuardedRoute) -> str:
    return f"{'+'.join(sorted(entry.methods - {'HEAD'})) or 'WS'} {entry.path}"


class Asked:
    """The guard, and what got through it."""

    def __init__(self, board: Board) -> None:
        self.guard = api.make_app(board.callers, token=TOKEN, hosts=("127.0.0.1", "192.168.1.5"))
        self.reached: list[GuardedRoute | None] = []
        self.guard.app = self._note
        self._board = board
        self._runner = asyncio.Runner()
        self._headers = {identity: self._credentials(identity) for identity in CALLERS}

    def close(self) -> None:
        self._runner.close()

    async def _note(self, scope: Any, receive: Any, send: Any) -> None:
        self.reached.append(scope.get("legion.route"))
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": REACHED, "headers": []})
            await send({"type": "http.response.body", "body": b""})
        else:
            await send({"type": "websocket.accept"})

    def _credentials(self, identity: OpenTo) -> dict[str, str]:
        board = self._board
        match identity:
            case OpenTo.PERSON:
                return {"authorization": f"Bearer {TOKEN}", "host": HOME}
            case OpenTo.PLUGIN:
                board.data.plugin_token.write_text(f"{PLUGIN_PREFIX}x")
                return {"authorization": f"Bearer {PLUGIN_PREFIX}x", "host": HOME}
            case OpenTo.AGENTS:
                return {"authorization": f"Bearer {board.token_of_agent()[1]}", "host": HOME}
            case OpenTo.TICKET:
                board.put(12, state="working")
                return {"authorization": f"Bearer {board.token_of_ticket(12)}", "host": HOME}
            case OpenTo.MACHINE | OpenTo.NO_LOGIN:
                # A machine's token opens the machines' own listener alone.
                return {"host": HOME} | ({"legion-machine": "x"} if identity is OpenTo.MACHINE else {})
        host = AWAY if OpenTo.LIMITED in identity else HOME
        code = board.service.offer_device(OfferDevice(read_only=OpenTo.READ_ONLY in identity)).code
        secret, _ = board.callers.accept_device(code, name="", host=host)
        return {"legion-device": secret, "host": host}

    def ask(self, identity: OpenTo, method: str, raw: str, path: str, more: Mapping[str, str] = {}) -> int:
        """The status of a request, or whether a WebSocket was opened: `method` WS."""
        is_socket = method == "WS"
        headers = {**self._headers[identity], **more}
        secret = headers.pop("legion-device", "") if is_socket else ""
        if is_socket and secret:
            headers["origin"] = f"http://{headers['host']}"
        scope = {
            "type": "websocket" if is_socket else "http",
            "scheme": "ws" if is_socket else "http",
            "method": method,
            "path": path,
            "raw_path": raw.encode(),
            "query_string": b"",
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers.items()],
            "server": ("127.0.0.1", PORT),
            "subprotocols": ["legion", secret] if secret else [],
        }
        if is_socket:
            del scope["method"]
        sent: list[Mapping[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Mapping[str, Any]) -> None:
            sent.append(message)

        self._runner.run(self.guard(scope, receive, send))
        if is_socket:
            return REACHED if sent[0]["type"] == "websocket.accept" else 403
        return int(sent[0]["status"])


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    board = Board(tmp_path_factory.mktemp("identities"))
    made = Asked(board)
    yield made
    made.close()
    board.close()


def concrete(entry: GuardedRoute, number: str = "1", name: str = "some-name") -> str:
    """A path of the route, with this in the place of its parameters."""
    kinds = entry.route.param_convertors  # type: ignore[attr-defined]  # both kinds of route have them
    path = entry.path
    for parameter, kind in kinds.items():
        value = number if type(kind).__name__ == "_NumberConvertor" else name
        path = path.replace(f"{{{parameter}:path}}", value).replace(f"{{{parameter}:positive}}", value)
        path = path.replace(f"{{{parameter}}}", value)
    return path


def is_open(entry: GuardedRoute, identity: OpenTo) -> bool:
    """Said once more in the test's own words."""
    if identity is PERSON or OpenTo.NO_LOGIN in entry.open_to:
        return True
    return all(each in entry.open_to for each in IDENTITIES if each in identity)


@attack(Attacker.AGENT, Door.RIGHTS)
@pytest.mark.parametrize("entry", ENTRIES, ids=label)
def test_a_route_lets_in_those_of_its_row_and_nobody_else(guarded: Asked, entry: GuardedRoute):
    path = concrete(entry)
    for method in sorted(entry.methods) or ["WS"]:
        for identity in CALLERS:
            before = len(guarded.reached)
            status = guarded.ask(identity, method, path, path)
            assert (status == REACHED) is is_open(entry, identity), f"{identity}: {status}"
            assert len(guarded.reached) - before == is_open(entry, identity)
            if status == REACHED:
                assert guarded.reached[-1] is not None
                assert label(guarded.reached[-1]) == label(entry)


WITH_NUMBER = [entry for entry in ENTRIES if concrete(entry, "1") != concrete(entry, "2")]


def found(entry: GuardedRoute, raw: str, path: str) -> GuardedRoute | None:
    """The route of the spelling, for any method of the entry. Rights follow from it, whoever calls."""
    for method in sorted(entry.methods) or [""]:
        scope = {"type": "http" if method else "websocket", "method": method, "path": path, "raw_path": raw.encode()}
        if one := TABLE.find(scope):
            return one
    return None


@attack(Attacker.AGENT, Door.RIGHTS)
@pytest.mark.parametrize("spelling", NUMBERS)
def test_a_number_has_one_spelling(guarded: Asked, spelling: str):
    """No other one is the path of a route."""
    raw, decoded = NUMBERS[spelling]
    assert len(WITH_NUMBER) > 40
    for entry in WITH_NUMBER:
        assert found(entry, concrete(entry), concrete(entry)) is entry
        assert found(entry, concrete(entry, raw), concrete(entry, decoded)) is None, concrete(entry, raw)
    shell = next(entry for entry in WITH_NUMBER if entry.path.endswith("/shell"))
    for identity in CALLERS:
        status = guarded.ask(identity, "POST", concrete(shell, raw), concrete(shell, decoded))
        assert status in (REACHED, 401)
        assert status == 401 or guarded.reached[-1] is None, "the app has no route for it, so its answer is 404"


@attack(Attacker.AGENT, Door.RIGHTS)
@pytest.mark.parametrize("spelling", PATHS)
def test_a_path_has_one_spelling(spelling: str):
    """Another one is the path of no route, or of the page's files, whose names are looked up."""
    for entry in ENTRIES:
        path = concrete(entry)
        raw, decoded = PATHS[spelling](path)
        one = found(entry, raw, decoded)
        assert one is None or one.path == "/web/{name:path}" or raw == path, raw


WRONG = (
    {"authorization": "Bearer wrong"},
    {"authorization": f"Basic {TOKEN}"},
    {"authorization": f"bearer{TOKEN}"},
    {"legion-device": "wrong"},
    {"cookie": f"legion={TOKEN}"},
    {"legion-machine": TOKEN},
    {"x-forwarded-for": "127.0.0.1", "forwarded": "for=127.0.0.1"},
    {"legion-session": "root"},
)


@attack(Attacker.NETWORK, Door.RIGHTS)
@pytest.mark.parametrize("headers", WRONG, ids=str)
def test_wrong_credentials_open_nothing(guarded: Asked, headers: dict[str, str]):
    for entry in ENTRIES:
        if OpenTo.NO_LOGIN not in entry.open_to:
            path, method = concrete(entry), min(entry.methods, default="WS")
            assert guarded.ask(OpenTo.NO_LOGIN, method, path, path, headers) in (401, 403), path


def test_every_row_is_served_and_every_route_has_one():
    served = {(method, entry.path) for entry in ENTRIES for method in entry.methods}
    for row in (*OPERATIONS.values(), *rows(OrchestrateOperations).values()):
        assert (row.method, row.path) in served


def test_a_route_without_a_row_cannot_be_served():
    async def endpoint(_: object) -> None: ...

    for route in (Route("/x", endpoint), WebSocketRoute("/ws/x", endpoint)):
        with pytest.raises(TypeError, match="who may call"):
            RouteTable([route])


def test_a_new_row_is_closed_to_all_but_the_person():
    @operation("GET", "/v1/new")
    def new(self: object) -> None: ...

    assert new.__operation__.open_to is OpenTo.PERSON  # type: ignore[attr-defined]


def test_a_guard_without_token_lets_in_no_token(guarded: Asked):
    guard = Guard(guarded.guard.app, guarded.guard.table, guarded.guard.callers, token=None, hosts=("127.0.0.1",))
    before, guarded.guard = guarded.guard, guard
    try:
        for identity in (PERSON, OpenTo.AGENTS, OpenTo.TICKET, OpenTo.PLUGIN):
            assert guarded.ask(identity, "GET", "/v1/tools", "/v1/tools") == 401
        assert guarded.ask(OpenTo.BROWSER, "GET", "/v1/status", "/v1/status") == REACHED
    finally:
        guarded.guard = before
