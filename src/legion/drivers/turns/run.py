"""One run that consists of turns: sends the prompt, delivers messages, interrupts, stops, and judges the end.

A message that comes during a turn is the prompt of the next one. An interrupt cancels the turn; its message follows.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import urlsplit

from legion.drivers import (
    ControlRequest,
    Ending,
    EndKind,
    Host,
    InterruptRequest,
    PermissionAnswer,
    StartFailed,
    StopRequest,
    TellRequest,
)
from legion.drivers.turns import conversations
from legion.drivers.turns.journal import RunJournal
from legion.drivers.turns.options import TurnOptions
from legion.drivers.turns.outcome import ENDED_WELL, GatewayAnswer, StopCause, TurnsFacts, judge
from legion.drivers.turns.permission_rules import RequestTasks

_INTERRUPT_GRACE = 2.0
"""Seconds to end the turn after an interrupt without a follow-up message."""
_LOOK_EVERY = 3.0
"""Seconds between two looks at the gateway while the program is silent."""
_FINAL_PATIENCE = 6.0
"""Seconds after a refused request: some programs wait for ever, or retry what cannot succeed."""
_LIMIT_PATIENCE = 20.0
"""Seconds of failed requests: a short overload passes, and a longer one frees the slot."""
_EXIT_GRACE = 2.0
"""Seconds to exit after its input was closed: a finished program has nothing to save."""


@dataclass(frozen=True, kw_only=True)
class TurnReport:
    """How a turn ended, as the program reports it."""

    reason: str = ""
    """`end_turn`, `cancelled`, or the program's own value; empty: it reported none."""
    text: str = ""
    error: str = ""
    usage: Mapping[str, Any] = field(default_factory=dict)
    cost_usd: float | None = None


class ProgramGone(Exception):
    """The program ended, or does not answer, in the middle of a turn."""


class TurnAgent(Protocol):
    """A program that works in turns."""

    on_work: Callable[[], None]
    """Called when the program works on its prompt."""

    @property
    def denied(self) -> list[str]:
        """The tools that it was denied."""
        ...

    @property
    def stderr(self) -> str:
        """The end of its error output."""
        ...

    async def open(self) -> bool:
        """Start it; True where its conversation is resumed. Raises StartFailed, ProgramGone."""
        ...

    async def turn(self, text: str) -> TurnReport:
        """One turn, from the prompt to its end. Raises ProgramGone."""
        ...

    async def cancel(self) -> None:
        """Interrupt the current turn."""
        ...

    def answer(self, answer: PermissionAnswer) -> None:
        """A person's answer to a question."""
        ...

    def kill(self) -> None: ...

    async def close(self, grace: float) -> int | None:
        """End the program; returns its exit code. Raises StartFailed where it never started."""
        ...


class TurnActivity:
    """When the program last did something, and what it does then: delivers the message of the turn."""

    def __init__(self) -> None:
        self.at = time.monotonic()
        self.open_calls = 0

    def note(self) -> None:
        self.at = time.monotonic()

    @property
    def silent_for(self) -> float:
        return 0.0 if self.open_calls else time.monotonic() - self.at


class TurnRun:
    """The turns of one run, with its control requests and deadlines."""

    def __init__(self, host: Host, options: TurnOptions, agent: TurnAgent, activity: TurnActivity) -> None:
        self._host = host
        self._options = options
        self._agent = agent
        self._activity = activity
        self._journal = RunJournal(host)
        self._queue: list[TellRequest] = []
        self._current: TellRequest | None = None
        self._cause = StopCause.NOTHING
        self._end = TurnReport()
        self._requests = RequestTasks()
        self._interrupting = False
        """A person's interrupt ends the current turn. What the program makes of it costs no attempt."""

    async def run_to_end(self) -> Ending:
        loop = asyncio.get_running_loop()
        deadline = None if self._host.timeout is None else loop.call_later(self._host.timeout, self._out_of_time)
        try:
            with self._requests.listening(self._host.asks, self._handle):
                await self._take_turns()
        except ProgramGone as gone:
            self._end = TurnReport(error=str(gone))
            if self._interrupting and self._cause is StopCause.NOTHING:
                self._cause = StopCause.UNRESPONSIVE
        finally:
            if deadline is not None:
                deadline.cancel()
        last = await last_answer(self._options.gateway_url, self._options.gateway_token)
        code = await self._agent.close(_EXIT_GRACE)
        self._requests.cancel()
        for message in self._queue:
            self._host.record("not-heard", id=message.id)
        return judge(self._facts(last, code))

    def _facts(self, last: GatewayAnswer | None, code: int | None) -> TurnsFacts:
        program = self._options.program
        return TurnsFacts(
            title=program.title,
            reason=self._end.reason,
            text=self._end.text,
            error=self._end.error,
            gateway=last,
            limit_signs=program.signs.limit,
            refusal_signs=program.signs.refused,
            cause=self._cause,
            timeout=self._host.timeout,
            exit_code=code,
            stderr=self._agent.stderr,
            denied=self._agent.denied,
        )

    async def _take_turns(self) -> None:
        resumed = await self._agent.open()
        self._host.record("conversation", id=self._options.conversation, resumed=resumed)
        text = (self._options.again if resumed else self._options.prompt).read_text("utf-8")
        if not resumed and self._options.rules:
            text = f"{self._options.rules}\n\n{text}"
        self._queue.insert(0, TellRequest(id=self._options.prompt_id or str(uuid.uuid4()), text=text))
        while self._queue and self._cause is StopCause.NOTHING:
            await self._take_turn(self._queue.pop(0))

    async def _take_turn(self, message: TellRequest) -> None:
        self._current = message
        self._interrupting = False
        self._activity.note()
        watching = asyncio.create_task(self._watch_gateway())
        try:
            self._end = await self._agent.turn(self._text(message))
        except ProgramGone:
            if self._current is not None:
                self._host.record("not-heard", id=message.id)
            raise
        finally:
            watching.cancel()
        self.heard()
        failed = bool(self._end.error) or self._end.reason not in (*ENDED_WELL, "cancelled")
        self._journal.record_turn_end(
            reason=self._end.reason,
            error=failed,
            text=self._end.text or self._end.error,
            status=None,
            usage=self._end.usage,
            cost_usd=self._end.cost_usd,
            denials=self._agent.denied,
            models=None if self._options.gateway_url else {"": {**self._end.usage, "usd": self._end.cost_usd}},
        )

    def _text(self, message: TellRequest) -> str:
        """Where the run's first prompt has an id, a mark shows later which prompts the conversation holds."""
        return conversations.marked(message.text, message.id) if self._options.prompt_id else message.text

    def heard(self) -> None:
        """The program works on the message, so it was delivered."""
        if self._current is not None:
            self._host.record("heard", id=self._current.id)
            self._current = None

    async def _watch_gateway(self) -> None:
        """End a turn whose requests fail: some programs wait for ever, or for an hour."""
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            if self._activity.silent_for < _LOOK_EVERY:
                continue
            last = await last_answer(self._options.gateway_url, self._options.gateway_token)
            if last is None or last.open or not last.is_failure:
                continue
            patience = _FINAL_PATIENCE if last.is_final else _LIMIT_PATIENCE
            if last.failing_for < patience:
                continue
            self._host.record("retry", status=last.status, error=last.error, delay_ms=None)
            self._requests.spawn(
                self._give_up(StopCause.REFUSAL if last.is_final else StopCause.OUTAGE, self._host.grace)
            )
            return

    async def _handle(self, ask: ControlRequest) -> None:
        match ask:
            case TellRequest():
                self._host.record("told", id=ask.id, text=ask.text)
                self._queue.append(ask)
            case InterruptRequest(then=then):
                await self._interrupt(then)
            case PermissionAnswer():
                self._agent.answer(ask)
            case StopRequest(grace=grace):
                grace = self._host.grace if grace is None else grace
                self._host.record("stopping", grace=grace)
                await self._give_up(StopCause.STOP, grace)

    async def _interrupt(self, then: TellRequest | None) -> None:
        self._host.record("interrupted")
        if then is None:
            await self._give_up(StopCause.INTERRUPT, _INTERRUPT_GRACE)
            return
        self._host.record("told", id=then.id, text=then.text)
        self._queue.insert(0, then)
        self._interrupting = True
        with contextlib.suppress(ProgramGone):
            await self._agent.cancel()

    def _out_of_time(self) -> None:
        self._host.record("out-of-time", timeout=self._host.timeout)
        self._requests.spawn(self._give_up(StopCause.TIME, self._host.grace))

    async def _give_up(self, why: StopCause, grace: float) -> None:
        """Cancel the turn, and kill the program after the grace."""
        if self._cause in (StopCause.NOTHING, StopCause.INTERRUPT):
            self._cause = why
        if grace <= 0:
            self._agent.kill()
            return
        killing = asyncio.get_running_loop().call_later(grace, self._agent.kill)
        try:
            with contextlib.suppress(ProgramGone):
                await self._agent.cancel()
            await asyncio.sleep(grace)
        finally:
            killing.cancel()


def run_turns(host: Host, agent_of: Callable[[Host, TurnOptions, TurnActivity], TurnAgent]) -> Ending:
    """One run of a program that works in turns, from its start to its end."""

    async def run() -> Ending:
        options, activity = TurnOptions.from_json(host.options), TurnActivity()
        agent = agent_of(host, options, activity)
        turns = TurnRun(host, options, agent, activity)
        agent.on_work = turns.heard
        return await turns.run_to_end()

    try:
        return asyncio.run(run())
    except StartFailed as failure:
        return Ending(outcome=EndKind.FAILED_TO_START, exit_code=None, message=str(failure))


# Asks the gateway how it answered this run's last request: programs do not report that reliably.

_TIMEOUT = 5.0


async def last_answer(url: str, token: str) -> GatewayAnswer | None:
    """How the gateway answered the last request of this run; None where it does not answer or has no record."""
    if not url:
        return None
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, TimeoutError):
        return _parse(await asyncio.wait_for(_get(url, token), _TIMEOUT))
    return None


async def _get(url: str, token: str) -> bytes:
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        # On a machine the gateway is reached through a relay, under a path of the run's own.
        path = f"{address.path.rstrip('/')}/legion/status"
        head = f"GET {path} HTTP/1.0\r\nHost: {address.netloc}\r\nAuthorization: Bearer {token}\r\n\r\n"
        writer.write(head.encode())
        await writer.drain()
        return await reader.read(-1)
    finally:
        writer.close()


def _parse(answer: bytes) -> GatewayAnswer | None:
    _, _, body = answer.partition(b"\r\n\r\n")
    last = json.loads(body).get("last")
    if last is None:
        return None
    return GatewayAnswer(
        status=int(last["status"]),
        error=str(last["error"] or ""),
        failures=int(last["failures"]),
        failing_for=float(last["failing_for"]),
        open=int(last["open"]),
    )
