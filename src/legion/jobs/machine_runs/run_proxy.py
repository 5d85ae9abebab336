"""The proxy of a runner on a machine, so that the head asks for its run in the usual way.

It holds the lock and the control socket in the head's folder of the run. Requests to stop, to interrupt and to tell
are stored for the machine; clients that follow the journal are notified when the head's copy of it has grown.
"""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import threading
from collections.abc import Iterator
from pathlib import Path

from legion.domain.errors import LegionError
from legion.domain.machines.machine import CommandKind, PlacedRun
from legion.drivers import ControlRequest, InterruptRequest, PermissionAnswer, StopRequest, TellRequest
from legion.jobs.board import Board
from legion.runner.control import ControlServer, gate
from legion.runner.spec import RunFolder
from legion.store.work import machines
from legion.system import files

log = logging.getLogger(__name__)

_LOCK_PATIENCE = 5.0
"""Seconds: another thread that looks whether the run has a runner holds the lock for a moment."""


class RunProxy:
    """Open it as a context. `ring` may be called from any thread."""

    def __init__(self, context: Board, placed: PlacedRun, folder: Path) -> None:
        self._context = context
        self._placed = placed
        self._folder = folder
        self._pipe = threading.Lock()
        self._reading, writing = os.pipe()
        os.set_blocking(writing, False)
        self._writing: int | None = writing
        """None once the run has ended."""
        self._ended = False
        self.grown = threading.Event()
        """Set when a file of the run has grown, or its state has changed."""
        self.moved = threading.Event()
        """Set when its state may have changed."""

    def ring(self, grown: bool = False) -> None:
        if not grown:
            self.moved.set()
        self.grown.set()
        # One byte in a full pipe is as good as two. A closed one may be another file of this process by now.
        with self._pipe, contextlib.suppress(BlockingIOError):
            if self._writing is not None:
                os.write(self._writing, b".")

    @contextlib.contextmanager
    def open(self) -> Iterator[RunProxy]:
        with gate(self._folder):
            held = files.lock(RunFolder(self._folder).lock, patience=_LOCK_PATIENCE)
            server = ControlServer(self._folder, self._placed.name)
        thread = threading.Thread(target=self._serve, args=(server,), name=f"at {self._placed.name}", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._ended = True
            self.ring()
            thread.join()
            server.close()
            held.release()
            with self._pipe:
                writing, self._writing = self._writing, None
            assert writing is not None, "opened once"
            os.close(writing)
            os.close(self._reading)

    def _serve(self, server: ControlServer) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(server.fileno(), selectors.EVENT_READ)
            selector.register(self._reading, selectors.EVENT_READ)
            while not self._ended:
                ready = {key.fd for key, _ in selector.select()}
                if self._reading in ready:
                    os.read(self._reading, 4096)
                    server.ring()
                for request in server.take():
                    self._pass_on(request)

    def _pass_on(self, request: ControlRequest) -> None:
        kind, facts = command_of(request)
        try:
            with self._context.store.write() as tx:
                now = machines.placed(tx, self._placed.run)
                if now is not None and now.open:
                    machines.send(tx, now, kind, facts)
        except LegionError as trouble:
            log.warning("run %s: the request to %s was not stored: %s", self._placed.name, kind.value, trouble.message)


def command_of(request: ControlRequest) -> tuple[CommandKind, dict[str, object]]:
    """A request of the control socket, as it is stored for a machine."""
    match request:
        case StopRequest(grace=grace):
            return CommandKind.STOP, {"grace": grace}
        case InterruptRequest(then=None):
            return CommandKind.INTERRUPT, {}
        case InterruptRequest(then=TellRequest(id=id, text=text)):
            return CommandKind.INTERRUPT, {"id": id, "text": text}
        case TellRequest(id=id, text=text):
            return CommandKind.TELL, {"id": id, "text": text}
        case PermissionAnswer(question=question, allowed=allowed, why=why):
            return CommandKind.PERMIT, {"question": question, "allowed": allowed, "why": why}
    raise AssertionError(f"an unknown request: {request!r}")
