"""No caller takes what others need: waiting requests, and the memory for bodies that are on their way."""

from __future__ import annotations

import asyncio
import http.client
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest
from starlette.types import ASGIApp

from legion.api.app import make_app
from legion.api.bodies import BodyLimits, IncomingBody
from legion.api.guard import Guard
from legion.api.machines import make_machine_app
from legion.api.problems import GuardRefusal
from legion.api.quota import MOST_OF_ONE, Quota, QuotaFull
from legion.service.entry.callers import CallerRegistry
from legion.service.machines.dial_in import DialIn
from legion.service.plain_operations import Caller
from legion.wire.agents import ToolAnswer, ToolCall
from tests.api.serving import TOKEN, Served
from tests.support.attacks import Attacker, Door, attack


@attack(Attacker.AGENT, Door.BOUNDS)
def test_one_caller_has_its_share_and_all_others_leave_some_to_the_person():
    quota = Quota("things", 100, each=30)
    taken = dict.fromkeys(("a", "b", "c", "root"), 0)
    refused: dict[str, int] = {}
    for caller in taken:
        for _ in range(101):
            try:
                quota.take(caller)
                taken[caller] += 1
            except QuotaFull as full:
                refused[caller] = full.status
                break
    assert taken == {"a": 30, "b": 30, "c": 15, "root": 25}
    assert refused == {"a": 429, "b": 429, "c": 503, "root": 503}
    quota.give_back("a", 30)
    quota.take("root", 30)
    with pytest.raises(QuotaFull):
        quota.take("c")


def waits(served: Served, token: str) -> http.client.HTTPConnection:
    line = http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)
    seen = served.board.last_event
    line.request("GET", f"/v1/wait?after_event={seen}&timeout=20", headers={"Authorization": f"Bearer {token}"})
    return line


@attack(Attacker.AGENT, Door.BOUNDS)
def test_an_agent_that_waits_everywhere_keeps_nobody_else_from_waiting(served: Served, monkeypatch: pytest.MonkeyPatch):
    served.board.put(1, state="working")
    token = served.board.token_of_agent()[1]
    with ExitStack() as ends, ThreadPoolExecutor(1) as pool:
        lines = [waits(served, token) for _ in range(MOST_OF_ONE)]
        for line in lines:
            ends.callback(line.close)
            assert served.board.news.waiting.acquire(timeout=20)
        one_more = waits(served, token)
        ends.callback(one_more.close)
        answer = one_more.getresponse()
        assert (answer.status, json.loads(answer.read())["code"]) == (503, "try_again")
        persons = pool.submit(served.over_tcp.wait, None, [1], after_event=served.board.last_event, timeout=20)
        assert served.board.news.waiting.acquire(timeout=20)
        served.board.put(1, state="done")
        assert persons.result(20).settled


class NeverAnswered(CallerRegistry):
    """Every tool's answer is that its caller has to go on waiting."""

    uses = 0

    def use_tool(self, caller: Caller, name: str, wanted: ToolCall, cwd: str | None = None) -> ToolAnswer:
        self.uses += 1
        return ToolAnswer(again=True)


@attack(Attacker.AGENT, Door.BOUNDS)
def test_a_tool_over_mcp_waits_no_longer_than_its_client(served: Served):
    board = served.board
    callers = NeverAnswered(board.context, board.service, board.news)
    app = make_app(callers, token=TOKEN, hosts=("localhost",))
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "legion-ask", "arguments": {}}}

    async def play() -> None:
        asking = Sender(app, TOKEN, "/mcp")
        await asking.sends(json.dumps(call).encode(), more=False)
        while callers.uses < 3:
            await asyncio.wait([asking.done], timeout=0.01)
            assert not asking.done.done()
        asking.leave()
        await asyncio.wait_for(asking.done, 20)

    asyncio.run(play())


@pytest.fixture
def guarded(served: Served) -> Guard:
    made = make_app(served.board.callers, token=TOKEN, hosts=("localhost",))
    reached: list[int] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        reached.append(len((await receive())["body"]))
        await send({"type": "http.response.start", "status": 299, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    made.app = app
    return made


class Sender:
    """One request, whose body arrives as the test wants it to."""

    def __init__(self, asked: ASGIApp, token: str = "", path: str = "/v1/tickets") -> None:
        self.parts: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.taken = asyncio.Semaphore(0)
        self.statuses: list[int] = []
        headers = [(b"host", b"localhost:1"), (b"content-type", b"application/json"), (b"accept", b"*/*")]
        headers += [(b"authorization", f"Bearer {token}".encode())] if token else []
        scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b""}
        self.done = asyncio.ensure_future(
            asked({**scope, "headers": headers, "server": ("127.0.0.1", 1)}, self._receive, self._send)
        )

    async def _receive(self) -> dict[str, Any]:
        message = await self.parts.get()
        self.taken.release()
        return message

    async def _send(self, message: Any) -> None:
        self.statuses += [message["status"]] if "status" in message else []

    def leave(self) -> None:
        self.parts.put_nowait({"type": "http.disconnect"})

    async def status(self) -> int:
        await asyncio.wait_for(self.done, 20)
        return self.statuses[0]

    async def sends(self, part: bytes, *, more: bool = True) -> None:
        await self.parts.put({"type": "http.request", "body": part, "more_body": more})
        taken = asyncio.ensure_future(self.taken.acquire())
        await asyncio.wait([taken, self.done], timeout=20, return_when=asyncio.FIRST_COMPLETED)


@attack(Attacker.AGENT, Door.BOUNDS)
def test_the_bodies_that_are_on_their_way_have_one_budget(served: Served, guarded: Guard):
    guarded.limits = BodyLimits(in_flight=Quota("bytes of unfinished requests", 400, each=200))
    token = served.board.token_of_agent()[1]

    async def play() -> None:
        first, second, hook = (Sender(guarded, token), Sender(guarded, token), Sender(guarded, path="/v1/forge/hook"))
        await first.sends(b"x" * 150)
        await second.sends(b"x" * 100)
        assert await second.status() == 429
        await hook.sends(b"x" * 151)
        assert await hook.status() == 503
        person = Sender(guarded, TOKEN)
        await person.sends(b"x" * 250, more=False)
        assert await person.status() == 299
        await first.sends(b"", more=False)
        assert await first.status() == 299
        again = Sender(guarded, token)
        await again.sends(b"x" * 200, more=False)
        assert await again.status() == 299, "what was read is free again"

    asyncio.run(play())


@attack(Attacker.AGENT, Door.BOUNDS)
@pytest.mark.parametrize("identity", ["agent", "person", "nobody"])
def test_every_body_has_to_be_there_in_time(served: Served, guarded: Guard, identity: str):
    guarded.limits = BodyLimits(seconds=0.05, seconds_without_login=0.05)
    tokens = {"agent": served.board.token_of_agent()[1], "person": TOKEN, "nobody": ""}

    async def play() -> int:
        slow = Sender(guarded, tokens[identity], "/v1/tickets" if tokens[identity] else "/web/login")
        await slow.sends(b"{")
        return await slow.status()

    assert asyncio.run(play()) == 408


@attack(Attacker.NETWORK, Door.BOUNDS)
def test_what_wants_to_join_as_a_machine_is_small_and_quick(served: Served):
    app = make_machine_app(DialIn(served.board.context), authority=str)
    app.state.limits = BodyLimits(seconds_without_login=0.05)

    async def play() -> list[int]:
        large, slow = Sender(app, path="/machine/v1/join"), Sender(app, path="/machine/v1/join")
        await large.sends(b"x" * (16 << 10))
        await large.sends(b"x")
        await slow.sends(b"{")
        return [await large.status(), await slow.status()]

    assert asyncio.run(play()) == [413, 408]


def test_a_client_that_left_gives_back_what_it_held():
    quota = Quota("bytes", 100, each=75)
    limits = BodyLimits(in_flight=quota)
    messages = iter([{"type": "http.request", "body": b"x" * 70, "more_body": True}, {"type": "http.disconnect"}])

    async def receive() -> Any:
        return next(messages)

    async def play() -> None:
        body = IncomingBody(limits, {"headers": []}, receive)
        assert await body.read("a", most=1000, is_known=True) is None
        with pytest.raises(QuotaFull):
            quota.take("a", 70)
        body.release()
        quota.take("a", 70)
        quota.give_back("a", 70)
        with pytest.raises(GuardRefusal):
            await IncomingBody(limits, {"headers": [(b"content-length", b"1001")]}, receive).read(
                "a", most=1000, is_known=True
            )

    asyncio.run(play())
