"""The routes for machines: an app of its own behind TLS, on which nothing of the person's API is reachable.

A machine's token opens these routes and nothing else. Every answer to an unknown or removed token is 401, to a release
that is too far apart 426, and to a run that is not, or no longer, the machine's own 409.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from fastapi.concurrency import run_in_threadpool
from pydantic import TypeAdapter, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from legion.api import machine_relay, problems
from legion.service.machines.dial_in import DialIn, MachineNews, MachineOld, WrongOffset
from legion.wire.errors import BadInput, LegionError, NotAllowed, Retryable
from legion.wire.machines import (
    MachineAccepted,
    MachineAnswer,
    MachineBeat,
    MachineFileSize,
    MachineJoin,
    MachineRunEnd,
)

log = logging.getLogger(__name__)

PREFIX = "/machine/v1"
LONGEST_WAIT = 25.0
_LOOK_AGAIN = 1.0
"""Seconds between two looks for news without a signal. A machine that another head removed is out within them."""
_REPLACED = "head_replaced"
_MOST_JSON = 8 << 20
_MOST_PIECE = 8 << 20
_RUN = PREFIX + "/runs/{run}/{generation:int}"

Parsed = TypeVar("Parsed")


def make_machine_app(head: DialIn, *, authority: Callable[[], str]) -> Starlette:
    """`authority` is the certificate that machines compare with the fingerprint in their invitation."""
    app = Starlette(
        routes=[
            Route(f"{PREFIX}/authority", _authority, methods=["GET"]),
            Route(f"{PREFIX}/join", _answering(_join), methods=["POST"]),
            Route(f"{PREFIX}/beat", _answering(_beat), methods=["POST"]),
            Route(f"{PREFIX}/projects/{{project:int}}/pack", _answering(_get_target), methods=["GET"]),
            Route(f"{_RUN}/pack", _answering(_get_pack), methods=["GET"]),
            Route(f"{_RUN}/end", _answering(_end), methods=["POST"]),
            Route(f"{_RUN}/snapshot", _answering(_snapshot), methods=["POST"]),
            Route(f"{_RUN}/late", _answering(_late), methods=["POST"]),
            Route(f"{_RUN}/gateway/{{path:path}}", _answering(_gateway), methods=["GET", "POST"]),
            Route(f"{_RUN}/tools/{{path:path}}", _answering(_tools), methods=["GET", "POST"]),
            Route(f"{_RUN}/{{file}}", _answering(_put_file), methods=["PUT"]),
        ],
    )
    app.state.head = head
    app.state.authority = authority
    app.state.signal = _NewsBell(head)
    # Made once: that takes longer than all else of a request.
    app.state.adapters = {kind: TypeAdapter(kind) for kind in (MachineJoin, MachineBeat, MachineRunEnd)}
    return app


class _NewsBell:
    """Wakes the beats of machines that have news. One look after a commit serves all that wait on this event loop."""

    def __init__(self, head: DialIn) -> None:
        self._head = head
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: dict[asyncio.Event, int] = {}
        self._known: Mapping[int, MachineNews] = {}
        self._looking: asyncio.Task[None] | None = None
        self._again = False
        self._looked_at = 0.0
        head.store.on_commit(self._committed)

    @contextlib.asynccontextmanager
    async def listening(self, machine: int) -> AsyncIterator[asyncio.Event]:
        self._loop = asyncio.get_running_loop()
        event = asyncio.Event()
        self._waiting[event] = machine
        try:
            yield event
        finally:
            del self._waiting[event]

    def look_if_due(self) -> None:
        """Another head, or a queue that did not answer, gives no signal."""
        if time.monotonic() - self._looked_at >= _LOOK_AGAIN / 2:
            self._look()

    def _committed(self) -> None:
        loop = self._loop
        if loop is not None:
            # The loop has ended with the daemon.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._look)

    def _look(self) -> None:
        self._again = True
        if self._waiting and (self._looking is None or self._looking.done()):
            self._looking = asyncio.get_running_loop().create_task(self._ring())

    async def _ring(self) -> None:
        while self._again:
            self._again = False
            self._looked_at = time.monotonic()
            try:
                news = await run_in_threadpool(self._head.news)
            except LegionError as trouble:
                log.warning("no look for news of machines, will retry: %s", trouble.message)
                return
            for event, machine in self._waiting.items():
                now = news.get(machine)
                if now is None or now.has_waiting or now != self._known.get(machine):
                    event.set()
            self._known = news


def _answering(handler: Callable[[Request, DialIn], Any]) -> Callable[[Request], Any]:
    """Turns errors into answers."""

    async def route(request: Request) -> Response:
        try:
            answer: Response = await handler(request, request.app.state.head)
        except MachineOld as far:
            return problems.answer(far, 426)
        except _Unknown as unknown:
            return problems.answer(unknown.error, 401)
        except WrongOffset as gap:
            body = {"code": "wrong_offset", **asdict(MachineFileSize(size=gap.size))}
            return JSONResponse(body, status_code=416)
        except Retryable as away:
            # The reason names the head's database, which is no machine's business.
            log.warning("a machine's request to %s has to be repeated: %s", request.url.path, away.message)
            return problems.answer(Retryable("The head cannot answer now, its log says why."))
        except LegionError as refusal:
            # A machine repeats it: the head that has taken over answers.
            return problems.answer(refusal, 503 if refusal.code == _REPLACED else None)
        return answer

    return route


class _Unknown(Exception):
    def __init__(self, error: NotAllowed) -> None:
        super().__init__(error.message)
        self.error = error


async def _authority(request: Request) -> Response:
    return PlainTextResponse(request.app.state.authority())


async def _join(request: Request, head: DialIn) -> Response:
    wanted = await _body(request, MachineJoin)
    try:
        joined = await run_in_threadpool(head.join, wanted)
    except NotAllowed as refused:
        raise _Unknown(refused) from refused
    return JSONResponse(asdict(joined), status_code=201)


async def _beat(request: Request, head: DialIn) -> Response:
    wanted = await _body(request, MachineBeat)
    machine = await _machine(request, head)
    deadline = time.monotonic() + min(max(wanted.wait, 0.0), LONGEST_WAIT)
    signal: _NewsBell = request.app.state.signal
    async with signal.listening(machine.id) as news:
        answer = await run_in_threadpool(head.beat, machine, wanted)
        if not _has_news(answer):
            answer = await _news(request, head, machine, wanted, news, deadline) or answer
    return JSONResponse(asdict(answer))


async def _news(
    request: Request,
    head: DialIn,
    machine: Any,  # noqa: ANN401 - a record that only the service reads
    wanted: MachineBeat,
    news: asyncio.Event,
    deadline: float,
) -> MachineAnswer | None:
    """Wait for what the machine has to know; None at the deadline, or when the machine has hung up."""
    loop = asyncio.get_running_loop()
    signal: _NewsBell = request.app.state.signal

    def wake() -> None:
        # The loop has ended with the daemon.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(news.set)

    async with _hang_up(request, news) as gone:
        with head.waiting(machine, wanted, wake) as beat:
            while (left := deadline - time.monotonic()) > 0 and beat.job() is None:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(news.wait(), min(left, _LOOK_AGAIN))
                if gone.is_set():
                    return None
                if not news.is_set():
                    signal.look_if_due()
                    continue
                news.clear()
                if beat.job() is None and _has_news(answer := await _look_again(request, head, wanted)):
                    return answer
        given = beat.job()
        return None if given is None else head.grant(machine, given)


@contextlib.asynccontextmanager
async def _hang_up(request: Request, news: asyncio.Event) -> AsyncIterator[asyncio.Event]:
    """Set, together with `news`, as soon as the machine has closed its connection: it is given nothing then."""
    gone = asyncio.Event()

    async def watch() -> None:
        # The body was read: nothing else arrives.
        await request.receive()
        gone.set()
        news.set()

    watching = asyncio.create_task(watch())
    try:
        yield gone
    finally:
        watching.cancel()


async def _look_again(request: Request, head: DialIn, wanted: MachineBeat) -> MachineAnswer:
    try:
        return await run_in_threadpool(head.look_again, _token(request), wanted)
    except NotAllowed as refused:
        raise _Unknown(refused) from refused


def _has_news(answer: MachineAnswer) -> bool:
    return bool(answer.jobs or answer.stop or answer.commands or answer.targets)


async def _put_file(request: Request, head: DialIn) -> Response:
    machine = await _machine(request, head)
    piece = await _limited(request, _MOST_PIECE)
    size = await run_in_threadpool(
        head.append,
        machine,
        run=request.path_params["run"],
        generation=request.path_params["generation"],
        file=request.path_params["file"],
        offset=_number(request, "offset"),
        piece=piece,
        late=request.query_params.get("late") == "1",
    )
    return JSONResponse(asdict(MachineFileSize(size=size)))


async def _get_pack(request: Request, head: DialIn) -> Response:
    machine = await _machine(request, head)
    file = await run_in_threadpool(
        head.pack,
        machine,
        run=request.path_params["run"],
        generation=request.path_params["generation"],
        have=_haves(request),
    )
    offset = _number(request, "offset")
    piece, size = await run_in_threadpool(_read_piece, file, offset)
    return Response(piece, media_type="application/octet-stream", headers={"legion-size": str(size)})


async def _get_target(request: Request, head: DialIn) -> Response:
    """A project's target for a machine that follows it. What is too long for one answer waits for the next job."""
    machine = await _machine(request, head)
    pack = await run_in_threadpool(
        head.target_pack,
        machine,
        project=request.path_params["project"],
        commit=request.query_params.get("commit", ""),
        have=_haves(request),
    )
    if len(pack) > _MOST_PIECE:
        raise BadInput(f"That pack is larger than {_MOST_PIECE >> 20} MB: wait for a job of the project.")
    return Response(pack, media_type="application/octet-stream")


async def _end(request: Request, head: DialIn) -> Response:
    machine = await _machine(request, head)
    end = await _body(request, MachineRunEnd)
    params = request.path_params
    await run_in_threadpool(head.end, machine, run=params["run"], generation=params["generation"], end=end)
    return JSONResponse(asdict(MachineAccepted()))


async def _snapshot(request: Request, head: DialIn) -> Response:
    machine = await _machine(request, head)
    commit = request.query_params.get("commit", "")
    params = request.path_params
    await run_in_threadpool(head.snapshot, machine, run=params["run"], generation=params["generation"], commit=commit)
    return JSONResponse(asdict(MachineAccepted()))


async def _late(request: Request, head: DialIn) -> Response:
    machine = await _machine(request, head)
    commit = request.query_params.get("commit", "")
    params = request.path_params
    await run_in_threadpool(head.late, machine, run=params["run"], generation=params["generation"], commit=commit)
    return JSONResponse(asdict(MachineAccepted(late=True)))


async def _gateway(request: Request, head: DialIn) -> Response:
    """The gateway checks the run's own pass, as for an agent on the head."""
    return await _relayed(request, head, head.gateway)


async def _tools(request: Request, head: DialIn) -> Response:
    """Legion's own tools, with the token of the run's agent; nothing else of the person's API."""
    if not request.path_params["path"].startswith("v1/tools/"):
        raise BadInput("Only Legion's tools are reachable here.")
    return await _relayed(request, head, head.tools)


async def _relayed(request: Request, head: DialIn, address: Callable[..., str]) -> Response:
    machine = await _machine(request, head)
    params = request.path_params

    def allowed() -> str:
        """Asked again while an answer streams: a removed machine gets no more of it."""
        head.machine(_token(request))
        return address(machine, run=params["run"], generation=params["generation"])

    base = await run_in_threadpool(allowed)
    authority = request.app.state.authority
    return await machine_relay.relay(request, f"{base}/{params['path']}", allowed, authority=authority)


async def _machine(request: Request, head: DialIn) -> Any:  # noqa: ANN401 - a record that only the service reads
    try:
        return await run_in_threadpool(head.machine, _token(request))
    except NotAllowed as refused:
        raise _Unknown(refused) from refused


def _token(request: Request) -> str:
    return str(request.headers.get(machine_relay.TOKEN, ""))


def _haves(request: Request) -> list[str]:
    return [one for one in request.query_params.get("have", "").split(",") if one]


def _number(request: Request, name: str) -> int:
    text = request.query_params.get(name, "0")
    if not text.isdecimal() or len(text) > 15:
        raise BadInput(f"`{name}` must be a whole number.")
    return int(text)


async def _body(request: Request, kind: type[Parsed]) -> Parsed:
    raw = await _limited(request, _MOST_JSON)
    try:
        parsed: Parsed = request.app.state.adapters[kind].validate_python(_known(kind, json.loads(raw)))
    except ValidationError as wrong:
        raise BadInput(problems.sentence([dict(one) for one in wrong.errors()])) from wrong
    except (ValueError, TypeError) as wrong:
        raise BadInput("The body is not valid JSON; send one JSON object.") from wrong
    return parsed


def _known(kind: type, facts: Any) -> Any:  # noqa: ANN401 - any JSON
    """Without the fields that a newer machine sends."""
    names = getattr(kind, "__dataclass_fields__", {})
    return {name: value for name, value in facts.items() if name in names} if isinstance(facts, dict) else facts


async def _limited(request: Request, most: int) -> bytes:
    """Read at most so much: the sender's own number of bytes is only a claim."""
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise BadInput(f"The body is larger than {most >> 20} MB: send it in pieces.")
        parts.append(part)
    return b"".join(parts)


def _read_piece(file: Path, offset: int) -> tuple[bytes, int]:
    with file.open("rb") as opened:
        size = opened.seek(0, 2)
        opened.seek(min(offset, size))
        return opened.read(_MOST_PIECE), size
