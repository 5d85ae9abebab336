"""The routes for machines: an app of its own behind TLS, on which nothing of the person's API is reachable.

`ROUTES` has all of them, with what each asks of its sender. A path is served only as it is spelled there: no escape,
no dots, no second slash, no redirect. A machine's token opens these routes and nothing else. Every answer to an unknown
or removed token is 401, to a release that is too far apart 426, and to a run that is not, or no longer, the machine's
own 409.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict, dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from fastapi.concurrency import run_in_threadpool
from pydantic import TypeAdapter, ValidationError
from starlette.applications import Starlette
from starlette.convertors import Convertor, register_url_convertor
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from legion.api import machine_news, problems
from legion.api.bodies import BodyLimits, IncomingBody
from legion.api.json_response import JSONResponse
from legion.api.machine_news import LOOK_AGAIN, NewsBell
from legion.api.problems import GuardRefusal
from legion.api.routes import MOST_BYTES_WITHOUT_LOGIN
from legion.domain.text import AnyJson
from legion.service.machines.dial_in import TOKEN, DialIn, MachineOld, RelayDoor, WrongOffset
from legion.wire.errors import BadInput, LegionError, NotAllowed, NotFound, Retryable
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
_REPLACED = "head_replaced"
_MOST_JSON = 8 << 20
_MOST_PIECE = 8 << 20
_MOST_RELAYED = 64 << 20
_RUN = "/runs/{run}/{generation:number}"
_PLAIN = re.compile(rb"(/[A-Za-z0-9_@:-][A-Za-z0-9_.@:-]*)+")

Parsed = TypeVar("Parsed")


class MachineIdentity(Enum):
    """What a request has to prove before its handler is called."""

    NONE = "none"
    """Nothing: the certificate is public."""
    INVITED = "invited"
    """The code of an invitation, in the body."""
    MACHINE = "machine"
    """The token of a machine."""


MachineRecord: TypeAlias = Any
"""A record that only the service reads."""


@dataclass(frozen=True)
class MachineRoute:
    method: str
    path: str
    """Below the prefix."""
    identity: MachineIdentity
    handler: Callable[[MachineCall], Awaitable[Response]]


@dataclass(frozen=True, kw_only=True)
class MachineCall:
    """A request whose sender is known."""

    request: Request
    head: DialIn
    machine: MachineRecord
    """A record that only the service reads; None where the identity is no machine's."""
    body: IncomingBody

    @property
    def fence(self) -> dict[str, Any]:
        """Run and generation, which the service compares with what the machine was given."""
        return {name: self.request.path_params[name] for name in ("run", "generation")}


class _PlainNumber(Convertor[int]):
    """A number as it is usually written, and small enough for a column."""

    regex = "0|[1-9][0-9]{0,17}"

    def convert(self, value: str) -> int:
        return int(value)

    def to_string(self, value: int) -> str:
        return str(value)


register_url_convertor("number", _PlainNumber())


class _PlainPaths:
    """Answers 404 to every path with an escape, an empty or dotted segment, or a slash at its end."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and _PLAIN.fullmatch(scope["raw_path"]) is None:
            await problems.answer(NotFound("There is nothing at this path."))(scope, receive, send)
            return
        await self.app(scope, receive, send)


def make_machine_app(head: DialIn, *, authority: Callable[[], str]) -> Starlette:
    """`authority` is the certificate that machines compare with the fingerprint in their invitation."""
    app = Starlette(
        routes=[Route(f"{PREFIX}{one.path}", _answering(one), methods=[one.method]) for one in ROUTES],
        middleware=[Middleware(_PlainPaths)],
    )
    app.router.redirect_slashes = False
    app.state.head = head
    app.state.authority = authority
    app.state.limits = BodyLimits()
    app.state.signal = NewsBell(head)
    # Made once: that takes longer than all else of a request.
    app.state.adapters = {kind: TypeAdapter(kind) for kind in (MachineJoin, MachineBeat, MachineRunEnd)}
    return app


def _answering(row: MachineRoute) -> Callable[[Request], Awaitable[Response]]:
    """Asks for the row's identity before anything else, and turns errors into answers."""

    async def route(request: Request) -> Response:
        head: DialIn = request.app.state.head
        body = IncomingBody(request.app.state.limits, request.scope, request.receive)
        try:
            known = await _machine(request, head) if row.identity is MachineIdentity.MACHINE else None
            return await row.handler(MachineCall(request=request, head=head, machine=known, body=body))
        except GuardRefusal as refusal:
            # A machine repeats what had no room.
            return problems.answer(refusal.error, 503 if isinstance(refusal.error, Retryable) else refusal.status)
        except MachineOld as far:
            return problems.answer(far, 426)
        except _Unknown as unknown:
            return problems.answer(unknown.error, 401)
        except WrongOffset as gap:
            return JSONResponse({"code": "wrong_offset", **asdict(MachineFileSize(size=gap.size))}, status_code=416)
        except Retryable as away:
            # The reason names the head's database, which is no machine's business.
            log.warning("a machine's request to %s has to be repeated: %s", request.url.path, away.message)
            return problems.answer(Retryable("The head cannot answer now, its log says why."))
        except LegionError as refusal:
            # A machine repeats it: the head that has taken over answers.
            return problems.answer(refusal, 503 if refusal.code == _REPLACED else None)
        finally:
            body.release()

    return route


class _Unknown(Exception):
    def __init__(self, error: NotAllowed) -> None:
        super().__init__(error.message)
        self.error = error


async def _authority(call: MachineCall) -> Response:
    return PlainTextResponse(call.request.app.state.authority())


async def _join(call: MachineCall) -> Response:
    wanted = await _body(call, MachineJoin)
    try:
        joined = await run_in_threadpool(call.head.join, wanted)
    except NotAllowed as refused:
        raise _Unknown(refused) from refused
    return JSONResponse(asdict(joined), status_code=201)


async def _beat(call: MachineCall) -> Response:
    request, head, machine = call.request, call.head, call.machine
    wanted = await _body(call, MachineBeat)
    deadline = time.monotonic() + min(max(wanted.wait, 0.0), LONGEST_WAIT)
    signal: NewsBell = request.app.state.signal
    async with signal.listening(machine.id) as news:
        answer = await run_in_threadpool(head.beat, machine, wanted)
        if not _has_news(answer):
            answer = await _news(request, head, machine, wanted, news, deadline) or answer
    return JSONResponse(asdict(answer))


async def _news(
    request: Request, head: DialIn, machine: MachineRecord, wanted: MachineBeat, news: asyncio.Event, deadline: float
) -> MachineAnswer | None:
    """Wait for what the machine has to know; None at the deadline, or when the machine has hung up."""
    loop = asyncio.get_running_loop()
    signal: NewsBell = request.app.state.signal

    def wake() -> None:
        # The loop has ended with the daemon.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(news.set)

    async with _hang_up(request, news) as gone:
        with head.waiting(machine, wanted, wake) as beat:
            while (left := deadline - time.monotonic()) > 0 and beat.job() is None:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(news.wait(), min(left, LOOK_AGAIN))
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


async def _put_file(call: MachineCall) -> Response:
    request = call.request
    piece = await _limited(call, _MOST_PIECE)
    size = await run_in_threadpool(
        call.head.append,
        call.machine,
        **call.fence,
        file=request.path_params["file"],
        offset=_number(request, "offset"),
        piece=piece,
        late=request.query_params.get("late") == "1",
    )
    return JSONResponse(asdict(MachineFileSize(size=size)))


async def _get_pack(call: MachineCall) -> Response:
    file = await run_in_threadpool(call.head.pack, call.machine, **call.fence, have=_haves(call.request))
    offset = _number(call.request, "offset")
    piece, size = await run_in_threadpool(_read_piece, file, offset)
    return Response(piece, media_type="application/octet-stream", headers={"legion-size": str(size)})


async def _get_target(call: MachineCall) -> Response:
    """A project's target for a machine that follows it. What is too long for one answer waits for the next job."""
    pack = await run_in_threadpool(
        call.head.target_pack,
        call.machine,
        project=call.request.path_params["project"],
        commit=call.request.query_params.get("commit", ""),
        have=_haves(call.request),
    )
    return Response(pack, media_type="application/octet-stream")


async def _end(call: MachineCall) -> Response:
    end = await _body(call, MachineRunEnd)
    await run_in_threadpool(call.head.end, call.machine, **call.fence, end=end)
    return JSONResponse(asdict(MachineAccepted()))


async def _snapshot(call: MachineCall) -> Response:
    commit = call.request.query_params.get("commit", "")
    await run_in_threadpool(call.head.snapshot, call.machine, **call.fence, commit=commit)
    return JSONResponse(asdict(MachineAccepted()))


async def _late(call: MachineCall) -> Response:
    commit = call.request.query_params.get("commit", "")
    await run_in_threadpool(call.head.late, call.machine, **call.fence, commit=commit)
    return JSONResponse(asdict(MachineAccepted(late=True)))


async def _relayed(door: RelayDoor, call: MachineCall) -> Response:
    """A request of the run's agent to the gateway or to one of Legion's tools, by exact name."""
    request, head = call.request, call.head
    path = f"/{request.path_params['path']}"
    headers = door.headers(request.headers)

    def allowed() -> str:
        """Asked again while an answer streams: a removed machine gets no more of it."""
        machine = head.machine(_token(request))
        return head.relayed(machine, **call.fence, door=door, method=request.method, path=path, headers=headers)

    url = await run_in_threadpool(allowed)
    body = await _limited(call, _MOST_RELAYED)
    query = request.query_params.multi_items() if door is RelayDoor.GATEWAY else ()
    outgoing = machine_news.RelayedRequest(method=request.method, url=url, query=query, headers=headers, body=body)
    return await machine_news.relay(outgoing, allowed, token=_token(request), authority=request.app.state.authority)


ROUTES = (
    MachineRoute("GET", "/authority", MachineIdentity.NONE, _authority),
    MachineRoute("POST", "/join", MachineIdentity.INVITED, _join),
    MachineRoute("POST", "/beat", MachineIdentity.MACHINE, _beat),
    MachineRoute("GET", "/projects/{project:number}/pack", MachineIdentity.MACHINE, _get_target),
    MachineRoute("GET", f"{_RUN}/pack", MachineIdentity.MACHINE, _get_pack),
    MachineRoute("POST", f"{_RUN}/end", MachineIdentity.MACHINE, _end),
    MachineRoute("POST", f"{_RUN}/snapshot", MachineIdentity.MACHINE, _snapshot),
    MachineRoute("POST", f"{_RUN}/late", MachineIdentity.MACHINE, _late),
    *(
        MachineRoute(method, f"{_RUN}/{door.value}/{{path:path}}", MachineIdentity.MACHINE, partial(_relayed, door))
        for door in RelayDoor
        for method in ("GET", "POST")
    ),
    MachineRoute("PUT", f"{_RUN}/{{file}}", MachineIdentity.MACHINE, _put_file),
)
"""All that is served to machines. What is about a run is answered only to the machine that was given it."""


async def _machine(request: Request, head: DialIn) -> MachineRecord:
    try:
        return await run_in_threadpool(head.machine, _token(request))
    except NotAllowed as refused:
        raise _Unknown(refused) from refused


def _token(request: Request) -> str:
    return str(request.headers.get(TOKEN, ""))


def _haves(request: Request) -> list[str]:
    return [one for one in request.query_params.get("have", "").split(",") if one]


def _number(request: Request, name: str) -> int:
    text = request.query_params.get(name, "0")
    if not text.isdecimal() or len(text) > 15:
        raise BadInput(f"`{name}` must be a whole number.")
    return int(text)


async def _body(call: MachineCall, kind: type[Parsed]) -> Parsed:
    raw = await _limited(call, _MOST_JSON)
    try:
        parsed: Parsed = call.request.app.state.adapters[kind].validate_python(_known(kind, json.loads(raw)))
    except ValidationError as wrong:
        raise BadInput(problems.sentence([dict(one) for one in wrong.errors()])) from wrong
    except (ValueError, TypeError) as wrong:
        raise BadInput("The body is not valid JSON; send one JSON object.") from wrong
    return parsed


def _known(kind: type, facts: AnyJson) -> AnyJson:
    """Without the fields that a newer machine sends."""
    names = getattr(kind, "__dataclass_fields__", {})
    return {name: value for name, value in facts.items() if name in names} if isinstance(facts, dict) else facts


async def _limited(call: MachineCall, most: int) -> bytes:
    """What has proven nothing yet may send as little, and takes as little time, as anyone without login."""
    if call.machine is None:
        read = await call.body.read("invited", most=MOST_BYTES_WITHOUT_LOGIN, is_known=False)
    else:
        read = await call.body.read(f"machine {call.machine.id}", most=most, is_known=True)
    if read is None:
        raise ClientDisconnect
    return read


def _read_piece(file: Path, offset: int) -> tuple[bytes, int]:
    with file.open("rb") as opened:
        size = opened.seek(0, 2)
        opened.seek(min(offset, size))
        return opened.read(_MOST_PIECE), size
