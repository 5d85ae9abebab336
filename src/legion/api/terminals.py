"""Terminals on the page: relays the frames between a browser and the runner that holds an agent's terminal or a shell.

A binary message is one frame without its length: a byte for its kind, then its data. The browser sends keys, sizes and
how many bytes it has drawn; the rest of a frame's meaning is in domain/terminal.py. A text message of the daemon is a
TerminalNotice.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from fastapi.concurrency import run_in_threadpool
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from legion.api import devices
from legion.api.events import HEARTBEAT, Wait
from legion.api.routes import CALLER, GuardedRoute
from legion.domain.text import to_json
from legion.service.entry.callers import CallerRegistry
from legion.service.operations import Caller, Service
from legion.service.tickets.attach import connect
from legion.wire.errors import LegionError, NotAllowed, Retryable
from legion.wire.table import OpenTo
from legion.wire.terminal import (
    Attach,
    BadFrame,
    FrameKind,
    FrameReader,
    Hello,
    OpenShell,
    OpenTerminal,
    TerminalNews,
    TerminalNotice,
    TerminalSize,
    frame,
)

PATH = "/ws/tickets/{id:positive}/terminal"
MOST_OPEN = 64
"""Terminals of all pages."""
WINDOW = 1 << 20
"""Bytes that the browser may have left to draw. Then no more is read from the runner, which cuts off a viewer that lags
behind too far."""
RETURN_SECONDS = 10.0
"""For which a conversation stays with the person after their tab was closed: it may only have been loaded again."""
_LEAST_PAUSE = 1.0
"""Seconds between two checks that the device is still let in."""
_CHUNK = 1 << 16
_NORMAL, _POLICY, _TRY_LATER = 1000, 1008, 1013
_AWAY = (1001, 4001)
"""The tab was closed or loaded again; or it shows another part of the page."""
_DRAWN = b"d"
"""From the browser: how many bytes of output it has drawn since its last report."""
_SIZE = re.compile(r"[0-9]{1,6}")
_SHELL = "shell"
_WAITING = "Waiting for a safe moment of the agent"


class OpenTerminals:
    """The terminals of all pages: how many there are, and how many hold the conversation of each ticket."""

    def __init__(self, most: int = MOST_OPEN) -> None:
        self._most = most
        self._open = 0
        self._holding: Counter[int] = Counter()
        self._later: set[asyncio.Task[None]] = set()

    def open(self, wanted: _Wanted) -> bool:
        if self._open >= self._most:
            return False
        self._open += 1
        self._holding[wanted.ticket] += wanted.takes_over
        return True

    def close(self, wanted: _Wanted) -> None:
        self._open -= 1
        self._holding[wanted.ticket] -= wanted.takes_over

    def is_held(self, ticket: int) -> bool:
        return self._holding[ticket] > 0

    def soon(self, work: Awaitable[None]) -> None:
        """Run it to its end, although the connection that asked for it has ended."""
        task = asyncio.ensure_future(work)
        self._later.add(task)
        task.add_done_callback(self._later.discard)


@dataclass(frozen=True, kw_only=True)
class _Wanted:
    ticket: int
    shell: bool
    only_looks: bool
    size: TerminalSize
    run: str

    @property
    def takes_over(self) -> bool:
        """The conversation of an agent that works alone becomes the person's."""
        return not self.shell and not self.only_looks

    @staticmethod
    def of(socket: WebSocket) -> _Wanted:
        given = socket.query_params
        columns, rows = (
            int(given[name]) if _SIZE.fullmatch(given.get(name, "")) else 0 for name in ("columns", "rows")
        )
        shell = given.get("kind") == _SHELL
        return _Wanted(
            ticket=socket.path_params["id"],
            shell=shell,
            only_looks=not shell and given.get("only_looks") == "1",
            size=TerminalSize(columns=columns or 80, rows=rows or 24).usable,
            run=given.get("run", "")[:80],
        )


async def terminal(socket: WebSocket) -> None:
    wanted = _Wanted.of(socket)
    terminals: OpenTerminals = socket.app.state.terminals
    if not terminals.open(wanted):
        await socket.close(_TRY_LATER)
        return
    relay = _PageTerminal(socket, wanted)
    try:
        await socket.accept()
        await relay.run()
    except (WebSocketDisconnect, RuntimeError, OSError):
        # The browser left in the middle of a message.
        pass
    finally:
        terminals.close(wanted)
        relay.leave(terminals)


class _PageTerminal:
    """One open terminal of a page."""

    def __init__(self, socket: WebSocket, wanted: _Wanted) -> None:
        self._socket = socket
        self._wanted = wanted
        self._callers: CallerRegistry = socket.app.state.callers
        self._caller: Caller = socket.scope[CALLER]
        self._service: Service = self._callers.acting(self._caller)
        self._size = wanted.size
        self._runner: asyncio.StreamWriter | None = None
        self._opening: asyncio.Future[Any] | None = None
        self._undrawn = 0
        self._room = asyncio.Event()
        self._room.set()
        self._left: int | None = None
        """The code with which the browser left."""
        self._holds = False
        """The conversation is the person's, or becomes it."""

    async def run(self) -> None:
        reading = asyncio.create_task(self._read_browser())
        showing = asyncio.create_task(self._show())
        watching = asyncio.create_task(self._watch_device())
        try:
            await asyncio.wait([reading, showing, watching], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (reading, showing, watching):
                task.cancel()
            if self._runner is not None:
                self._runner.close()
        # Results are read, so that a fault of ours is raised.
        for task in (reading, showing, watching):
            if task.done() and not task.cancelled():
                task.result()
        if self._left is None:
            with contextlib.suppress(RuntimeError):
                await self._socket.close(_POLICY if watching.done() and not watching.cancelled() else _NORMAL)

    def leave(self, terminals: OpenTerminals) -> None:
        """As a person detaches: the agent of a conversation that they took over works alone again.

        A connection that broke off holds it; the runner waits for its viewer then.
        """
        if self._holds and self._left in (_NORMAL, *_AWAY):
            terminals.soon(self._give_back(terminals, 0.0 if self._left == _NORMAL else RETURN_SECONDS))

    async def _give_back(self, terminals: OpenTerminals, seconds: float) -> None:
        if self._runner is not None:
            # The runner counts its viewers.
            with contextlib.suppress(OSError):
                await self._runner.wait_closed()
        await asyncio.sleep(seconds)
        await self._let_go(terminals)
        if self._opening is not None:
            # It may have asked for the conversation after that.
            with contextlib.suppress(LegionError):
                await self._opening
            await self._let_go(terminals)

    async def _let_go(self, terminals: OpenTerminals) -> None:
        if not terminals.is_held(self._wanted.ticket):
            with contextlib.suppress(LegionError):
                await run_in_threadpool(self._service.give_back, self._wanted.ticket)

    # From the runner to the browser

    async def _show(self) -> None:
        try:
            if fault := devices.terminal_fault(self._socket.scope, only_looks=self._wanted.only_looks):
                raise NotAllowed(fault)
            found = await self._opened()
            if found is None:
                return
            connection = await run_in_threadpool(connect, found)
        except LegionError as refusal:
            news = TerminalNews.LOST if isinstance(refusal, Retryable) else TerminalNews.REFUSED
            await self._notify(news, message=refusal.message)
            return
        self._holds = found.wheel and self._wanted.takes_over
        output, self._runner = await asyncio.open_unix_connection(sock=connection)
        hello = Hello(size=self._size, only_looks=self._wanted.only_looks)
        self._runner.write(frame(FrameKind.HELLO, hello.to_bytes()))
        await self._notify(TerminalNews.OPEN, message=found.message, run=found.run, wheel=found.wheel)
        if not await self._pass_on(output):
            await self._notify(TerminalNews.LOST, message="The terminal is gone.")

    async def _opened(self) -> OpenTerminal | None:
        wanted, began = self._wanted, time.monotonic()
        if wanted.shell:
            size = {"columns": self._size.columns, "rows": self._size.rows}
            return await self._waited(
                partial(self._service.shell, wanted.ticket, OpenShell(**size, term="xterm-256color", run=wanted.run))
            )
        self._holds = wanted.takes_over
        waited = 0.0
        while True:
            if not wanted.only_looks:
                await self._notify(TerminalNews.WAITING, message=_WAITING)
            asked = Attach(only_looks=wanted.only_looks, waited=waited)
            found = await self._waited(partial(self._service.attach, wanted.ticket, asked))
            if found.socket:
                return found
            if wanted.only_looks:
                await self._notify(TerminalNews.NONE, message=found.message)
                return None
            waited = time.monotonic() - began

    async def _waited(self, blocking: Callable[[], OpenTerminal]) -> OpenTerminal:
        """In a thread that outlives this connection; `leave` waits for it."""
        self._opening = asyncio.ensure_future(self._socket.app.state.waiters.run(self._caller.id, blocking))
        found: OpenTerminal = await asyncio.shield(self._opening)
        self._opening = None
        return found

    async def _pass_on(self, output: asyncio.StreamReader) -> bool:
        """Whether the program has ended; otherwise its runner is gone."""
        frames = FrameReader()
        while data := await output.read(_CHUNK):
            try:
                for kind, content in frames.feed(data):
                    await self._socket.send_bytes(kind.value + content)
                    if kind is FrameKind.END:
                        self._holds = False
                        return True
                    await self._make_room(len(content))
            except BadFrame:
                return False
        return False

    async def _make_room(self, sent: int) -> None:
        self._undrawn += sent
        if self._undrawn > WINDOW:
            self._room.clear()
            await self._room.wait()

    async def _notify(self, news: TerminalNews, message: str = "", *, run: str = "", wheel: bool = False) -> None:
        notice = TerminalNotice(news=news.value, message=message, run=run, wheel=wheel)
        await self._socket.send_text(to_json(asdict(notice)))

    # From the browser to the runner

    async def _read_browser(self) -> None:
        while True:
            message = await self._socket.receive()
            if message["type"] == "websocket.disconnect":
                self._left = message.get("code", _NORMAL)
                return
            with contextlib.suppress(BadFrame):
                await self._take(message.get("bytes") or b"")

    async def _take(self, message: bytes) -> None:
        kind, content = message[:1], message[1:]
        if kind == _DRAWN:
            self._undrawn = max(0, self._undrawn - int.from_bytes(content[:4]))
            if self._undrawn <= WINDOW:
                self._room.set()
        elif kind == FrameKind.SIZE.value:
            self._size = TerminalSize.from_bytes(content)
            await self._send(FrameKind.SIZE, content)
        elif kind == FrameKind.KEYS.value:
            await self._send(FrameKind.KEYS, content)

    async def _send(self, kind: FrameKind, content: bytes) -> None:
        """What comes before the terminal is open is dropped; the hello holds the last size."""
        if self._runner is not None and not self._wanted.only_looks:
            self._runner.write(frame(kind, content))
            with contextlib.suppress(OSError):
                await self._runner.drain()

    async def _watch_device(self) -> None:
        still_in = partial(devices.is_still_in, self._callers, self._socket.scope)
        wait = partial(self._socket.app.state.stream_waiters.run, self._caller.id)
        await until_shut_out(still_in, self._service, wait)


async def until_shut_out(still_in: Callable[[], bool], service: Service, wait: Wait) -> None:
    """Ends when the device is shut out."""
    while True:
        # Read before the device is checked: shutting it out after the check is then a newer event, and ends the wait.
        seen = await run_in_threadpool(service.last_event)
        if not await run_in_threadpool(still_in):
            return
        await asyncio.sleep(_LEAST_PAUSE)
        with contextlib.suppress(Retryable):
            await wait(partial(service.wait_for_event, seen, HEARTBEAT))


ROUTE = GuardedRoute(route=WebSocketRoute(PATH, terminal), open_to=OpenTo.LOOKS)
