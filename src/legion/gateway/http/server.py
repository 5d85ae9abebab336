"""The gateway process: locks its folder, listens, handles requests until a signal, and shuts down.

Wires the parts of the gateway together.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from aiohttp import web

from legion import __version__
from legion.domain.errors import NotAllowed, Retryable, StateConflict
from legion.gateway.access.admission import (
    Admission,
    Endpoint,
    Refused,
    healthy,
    json_answer,
    route_of,
    token_of,
    unreadable,
)
from legion.gateway.access.keys import Keys
from legion.gateway.access.token_exchange import Exchange
from legion.gateway.accounting.ledger import LimitEntry, RequestError
from legion.gateway.accounting.limits import Novelty
from legion.gateway.accounting.meter import Meter
from legion.gateway.accounting.prices import PriceList
from legion.gateway.dialects.messages import ModelErrorKind
from legion.gateway.dialects.registry import Dialect
from legion.gateway.files.address import GatewayAddress, announce, last_port, own_variables, withdraw
from legion.gateway.files.folder import GatewayFolder
from legion.gateway.files.passes import Pass
from legion.gateway.http.dispatch import Incoming, ProviderDispatch, read_incoming
from legion.gateway.http.forward import MAX_HEADER, Forwarder, new_session
from legion.gateway.json_text import Json, NestedTooDeeply, UnreadableMessage, dumps, loads
from legion.gateway.recording.recorder import new_recorder, save
from legion.system import files, kernel, ports
from legion.system.paths import user_config_file

log = logging.getLogger("legion.gateway")

_LOCK_PATIENCE = 2.0
"""Seconds: a process that tests the lock holds it for a moment."""
_HOST = "127.0.0.1"
_MAX_BODY = 64 << 20
_LINGER = 10.0
"""Seconds in which the rest of a refused body is read, so that the caller can read the refusal."""
_RECORDED = (Endpoint.MESSAGES, Endpoint.CHAT, Endpoint.RESPONSES, Endpoint.GENERATE, Endpoint.STREAM_GENERATE)
_OBJECTS_BETWEEN_COLLECTIONS = 50_000


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """The options of the process."""

    folder: GatewayFolder
    port: int
    idle: float
    grace: float
    receive: float
    """Seconds within which the head and the body of a request must each arrive."""
    ready: int | None
    """A pipe for the line that reports the start."""


class HeldBodies:
    """The bodies of open requests, which stay in memory for another try: so many bytes of all, so many of one run."""

    def __init__(self, most: int = 512 << 20, of_run: int = 192 << 20) -> None:
        self._most = most
        self._of_run = of_run
        self._held: dict[object, tuple[str, int]] = {}

    def hold(self, request: object, run: str, size: int) -> None:
        """The body has this size now. Raises Refused where that is too much."""
        others = [held for other, held in self._held.items() if other is not request]
        of_run = sum(bytes_ for name, bytes_ in others if name == run)
        if of_run + size > self._of_run or sum(bytes_ for _, bytes_ in others) + size > self._most:
            sentence = "the open requests are too large together; send it again once others have ended."
            raise Refused(503, ModelErrorKind.OVERLOADED, sentence)
        self._held[request] = (run, size)

    def release(self, request: object) -> None:
        self._held.pop(request, None)


class Gateway:
    """Handles requests."""

    def __init__(
        self, folder: GatewayFolder, meter: Meter, admission: Admission, dispatch: ProviderDispatch, receive: float
    ) -> None:
        self._folder = folder
        self._meter = meter
        self._admission = admission
        self._dispatch = dispatch
        self._receive = receive
        self._control = Control(admission, meter)
        self._tasks: set[asyncio.Task[object]] = set()
        self._bodies = HeldBodies()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            return await self._answer(request)
        except Refused as refused:
            return refused.answer(_dialect(request))
        except ConnectionError:
            # The caller is gone; aiohttp closes the connection.
            raise
        except Exception as fault:  # one broken request must not end the others; its text might hold a key
            log.error("A request failed with %s.", type(fault).__name__)
            failed = Refused(500, ModelErrorKind.API, f"the gateway failed on this request; see {self._folder.log}.")
            return failed.answer(_dialect(request))
        finally:
            self._tasks.discard(task)
            self._bodies.release(task)

    async def drain(self, grace: float) -> None:
        """Wait for open answers, and cancel those that are left after the grace period."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=grace)
        left = set(self._tasks)
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=grace)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.raw_path.partition("?")[0]
        try:
            route = route_of(request.method, path)
            if not route.needs_pass:
                return healthy(__version__)
            pass_ = self._admission.caller(request.headers)
        except Refused as refused:
            self._meter.refuse(refused.status, refused.error)
            raise
        endpoint = route.endpoint
        if endpoint is None:
            return await self._control_answer(request, path, pass_)
        record = self._meter.open(pass_)
        try:
            body = await self._body(request, pass_.run)
            incoming = self._control.apply(record.pass_, read_incoming(endpoint, request, body))
            record.model = incoming.model
            self._admission.admit(endpoint, record.pass_, incoming.model)
            if pass_.recorded and endpoint in _RECORDED:
                record.recorder = new_recorder(
                    pass_.run, endpoint.dialect, incoming.conversation, request.headers, incoming.body
                )
                record.redact(token_of(request.headers))
            return await self._dispatch.dispatch(request, incoming, record)
        except Refused as refused:
            record.status, record.error = refused.status, refused.error
            record.refused = refused.error if refused.status < 500 else None
            raise
        except (asyncio.CancelledError, ConnectionError):
            gone = request.transport is None or request.transport.is_closing()
            # Some callers close the connection after the last event, before the stream has ended.
            if not (gone and record.summary.complete):
                record.fail(RequestError.CALLER_GONE if gone else RequestError.ENDED)
            raise
        except Exception:  # raised again: the record only notes it
            record.fail(RequestError.BROKEN)
            raise
        finally:
            self._meter.close(record)
            if record.recorder is not None and not record.cut:
                save(self._folder, record.recorder)

    async def _control_answer(self, request: web.BaseRequest, path: str, pass_: Pass) -> web.StreamResponse:
        try:
            return self._control.answer(request.method, path, pass_, await self._body(request, pass_.run))
        except Refused as refused:
            self._meter.refuse(refused.status, refused.error, pass_.run)
            raise

    async def _body(self, request: web.BaseRequest, run: str) -> bytes:
        """Raises Refused for a body that is too large, alone or with others, or arrives too slowly."""
        try:
            async with asyncio.timeout(self._receive):
                return await _read_body(request, partial(self._bodies.hold, asyncio.current_task(), run))
        except TimeoutError:
            sentence = f"the request did not arrive within {self._receive:g} s; send it faster."
            raise Refused(408, ModelErrorKind.TIMEOUT, sentence, RequestError.SLOW_CALLER) from None


def _dialect(request: web.BaseRequest) -> Dialect:
    """The dialect of errors for this caller."""
    try:
        endpoint = route_of("POST", request.raw_path.partition("?")[0]).endpoint
    except Refused:
        endpoint = None
    return Dialect.ANTHROPIC if endpoint is None else endpoint.dialect


async def _read_body(request: web.BaseRequest, hold: Callable[[int], None]) -> bytes:
    if request.headers.get("expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0
    pieces, size = [], 0
    async for piece in request.content.iter_any():
        size += len(piece)
        if size > _MAX_BODY:
            raise Refused(413, ModelErrorKind.TOO_LARGE, f"the request is larger than {_MAX_BODY >> 20} MB; send less.")
        hold(size)
        pieces.append(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def serve(spec: ServerOptions) -> None:
    """Serve until SIGTERM or SIGINT. Raises a LegionError where it cannot start."""
    # This process holds the keys.
    kernel.hide_memory()
    # Requests make thousands of small objects and no cycles: collecting at the usual rate would dominate the cost.
    gc.collect()
    gc.freeze()
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    with _locked(spec.folder):
        withdraw(spec.folder)
        meter = Meter(spec.folder, PriceList(user_config_file().with_name("prices.toml")))
        meter.resume()
        listener = _listen(last_port(spec.folder, spec.port), spec.port)
        try:
            asyncio.run(_run(spec, meter, listener))
        finally:
            meter.end()


async def _run(spec: ServerOptions, meter: Meter, listener: socket.socket) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    novelty = Novelty()

    def note(limit: LimitEntry) -> None:
        if novelty.is_new(limit):
            meter.note(limit)

    async with new_session(spec.idle) as session:
        admission = Admission(spec.folder, meter)
        gateway = Gateway(
            spec.folder,
            meter,
            admission,
            ProviderDispatch(admission, meter, Keys(), Exchange(session), Forwarder(session, note)),
            spec.receive,
        )
        server = web.Server(
            gateway.handle,
            handler_cancellation=True,
            access_log=None,
            # Also limits the time for the first head of a connection.
            keepalive_timeout=spec.receive,
            lingering_time=min(spec.receive, _LINGER),
            auto_decompress=False,
            max_line_size=MAX_HEADER,
            max_field_size=MAX_HEADER,
        )
        runner = web.ServerRunner(server, shutdown_timeout=0.1)
        await runner.setup()
        site = web.SockSite(runner, listener)
        await site.start()
        address = GatewayAddress(
            url=f"http://{_HOST}:{listener.getsockname()[1]}",
            pid=os.getpid(),
            release=__version__,
            variables=own_variables(),
        )
        announce(spec.folder, address, asked=spec.port)
        log.info("The gateway listens at %s.", address.url)
        if not report_start(spec.ready, "ready"):
            # The process that started this one is gone, and may have ended everything meanwhile.
            ended.set()
        await ended.wait()
        log.info("The gateway ends.")
        withdraw(spec.folder)
        await site.stop()
        server.pre_shutdown()
        await gateway.drain(spec.grace)
        await runner.cleanup()


def report_start(ready: int | None, line: str) -> bool:
    """Send one line to the process that started this one. False if it is gone."""
    if ready is None:
        return True
    try:
        with os.fdopen(ready, "wb", buffering=0) as pipe:
            pipe.write(f"{line}\n".encode())
    except OSError:
        return False
    return True


@contextlib.contextmanager
def _locked(folder: GatewayFolder) -> Iterator[None]:
    """Hold the lock of the folder, so that no other gateway uses it."""
    try:
        folder.prepare()
        lock = files.lock(folder.lock, patience=_LOCK_PATIENCE)
    except files.AlreadyLocked:
        raise StateConflict(f"Another gateway already serves {folder.root}: use it, or end it first.") from None
    except OSError as fault:
        raise NotAllowed(f"The gateway cannot use {folder.root} ({fault.strerror}): name another folder.") from fault
    try:
        yield
    finally:
        lock.release()


def _listen(*wanted: int) -> socket.socket:
    try:
        listener = ports.listen(_HOST, *wanted)
    except ports.Unusable as fault:
        raise NotAllowed(f"The gateway cannot listen on port {fault.port} ({fault.reason}): choose another.") from fault
    if listener is None:
        raise Retryable(f"No port from {wanted[-1]} on is free: choose another for the gateway.")
    return listener


# The paths under /legion/: an agent program reads its own provider and budget, and chooses a model for its run.
#
# Address and key of the provider are the person's choice and cannot be changed here.

_NOT_YOURS = ("target_url", "api_key", "api_format")
_MAX_RUNS = 10_000


class Control:
    def __init__(self, admission: Admission, meter: Meter) -> None:
        self._admission = admission
        self._meter = meter
        self._models: dict[str, str] = {}
        """By run; lost when the gateway ends."""

    def answer(self, method: str, path: str, pass_: Pass, body: bytes) -> web.Response:
        match method, path:
            case "GET", "/legion/status":
                return json_answer(200, self._status(pass_))
            case "GET", "/legion/providers":
                return json_answer(200, self._providers(pass_))
            case "POST", "/legion/config":
                self._configure(pass_, body)
                return json_answer(200, {"ok": True})
            case _:
                raise AssertionError(f"{method} {path} has a row and no answer")

    def apply(self, pass_: Pass, incoming: Incoming) -> Incoming:
        """The request with the model that its run has chosen. Raises Refused."""
        model = self._models.get(pass_.run)
        if model is None or incoming.facts is None or incoming.endpoint is Endpoint.MODELS:
            return incoming
        facts = {**incoming.facts, "model": model}
        try:
            return replace(incoming, facts=facts, body=dumps(facts))
        except NestedTooDeeply as fault:
            raise unreadable(fault) from None

    def _status(self, pass_: Pass) -> Json:
        provider = self._admission.provider(pass_.provider)
        return {
            "target_url": provider.url,
            "api_format": provider.kind.value,
            "model": self._models.get(pass_.run),
            "configured": True,
            "provider": provider.name,
            "run": pass_.run,
            "ticket": pass_.ticket,
            "budget_usd": pass_.budget_usd,
            "spent_usd": round(pass_.spent_usd + self._meter.spent(pass_.run), 6),
            "last": self._last(pass_),
        }

    def _last(self, pass_: Pass) -> Json | None:
        """How the run's last request ended. Drivers read it: programs do not report that reliably."""
        last = self._meter.last(pass_.run)
        if last is None:
            return None
        return {
            "status": last.status,
            "error": last.error,
            "failures": last.failures,
            "failing_for": round(time.monotonic() - last.failing_since, 3) if last.failures else 0.0,
            "open": self._meter.open_count(pass_.run),
        }

    def _providers(self, pass_: Pass) -> Json:
        """Only the run's own provider: an agent need not know the others."""
        provider = self._admission.provider(pass_.provider)
        return {"providers": [{"name": provider.name, "kind": provider.kind.value, "url": provider.url}]}

    def _configure(self, pass_: Pass, body: bytes) -> None:
        try:
            wanted = loads(body)
        except UnreadableMessage as fault:
            raise unreadable(fault) from None
        if any(wanted.get(name) is not None for name in _NOT_YOURS):
            raise Refused(
                403, ModelErrorKind.PERMISSION, "address and key are the person's choice; use `legion provider add`."
            )
        unknown = [name for name in wanted if name not in ("model", *_NOT_YOURS)]
        if unknown:
            sentence = f"{unknown[0][:40]!r} cannot be set here; only `model` can."
            raise Refused(400, ModelErrorKind.INVALID, sentence)
        model = wanted.get("model")
        if model is not None and not isinstance(model, str):
            raise Refused(400, ModelErrorKind.INVALID, "`model` must be a text; name a model.")
        if not model:
            self._models.pop(pass_.run, None)
            return
        self._admission.admit(Endpoint.MESSAGES, pass_, model)
        if len(self._models) >= _MAX_RUNS:
            del self._models[next(iter(self._models))]
        self._models[pass_.run] = model
