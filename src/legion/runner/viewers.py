"""Those that look at a run's terminal: a unix socket in the run's folder that replays the last output to each of them.

Only the runner of a program with a terminal opens it, so whether the socket is there says whether one can attach.
"""

from __future__ import annotations

import contextlib
import re
import select
import selectors
import socket
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from legion.domain.terminal import BadFrame, FrameKind, FrameReader, Hello, TerminalEnd, TerminalSize, frame
from legion.drivers import TerminalInput
from legion.runner.control import bind
from legion.runner.spec import TERMINAL_SOCKET

RING = 256 << 10
"""Bytes of output that a new viewer gets first."""
_MOST_UNSENT = 4 << 20
"""Bytes that a viewer may lag behind; then it is cut off, and attaches again to see the present screen."""
_CHUNK = 1 << 16
_MODE = re.compile(rb"\x1b\[\?([0-9;]{1,32})([hl])")
_QUERY = re.compile(
    rb"\x1b\[[?>=]?[0-9;]*c|\x1b\[\??[0-9;]*(?:n|\$p)|\x1b\[>[0-9]*q|\x1b\[\?u|\x1b\[[0-9;]*t"
    rb"|\x1b\][0-9;]*;\?(?:\x07|\x1b\\)|\x1bP[+$]q[^\x1b]*\x1b\\|\x1bZ|\x05"
)
"""Sequences to which a terminal answers: its kind, the place of the cursor, modes, sizes, colours."""


@dataclass(eq=False)
class _Viewer:
    socket: socket.socket
    frames: FrameReader = field(default_factory=FrameReader)
    size: TerminalSize | None = None
    """None until its hello."""
    only_looks: bool = False
    unsent: bytearray = field(default_factory=bytearray)


class Ring:
    """The last output of a program, and the modes of the terminal that it set before."""

    def __init__(self, most: int = RING) -> None:
        self._most = most
        self._bytes = bytearray()
        self._modes: dict[bytes, bytes] = {}

    def add(self, data: bytes) -> None:
        self._bytes += data
        if len(self._bytes) > self._most:
            cut = self._safe_cut(len(self._bytes) - self._most)
            for found in _MODE.finditer(bytes(self._bytes[:cut])):
                for mode in found[1].split(b";"):
                    self._modes[mode] = found[2]
            del self._bytes[:cut]

    def replay(self) -> bytes:
        """Without queries: a terminal that answers an old one would type into the program."""
        modes = b"".join(b"\x1b[?%s%s" % (mode, end) for mode, end in self._modes.items())
        return modes + _QUERY.sub(b"", bytes(self._bytes))

    def _safe_cut(self, least: int) -> int:
        """Behind a line or before an escape sequence, so that no sequence is cut in two."""
        near = bytes(self._bytes[least : least + 4096])
        places = [at for at in (near.find(b"\x1b"), near.find(b"\n") + 1) if at > 0]
        return least + min(places, default=0)


class ViewerServer:
    """One file descriptor to wait for, however many viewers there are."""

    def __init__(self, run_dir: Path) -> None:
        self._path = run_dir / TERMINAL_SOCKET
        self._ring = Ring()
        self._viewers: set[_Viewer] = set()
        self._selector = selectors.DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.setblocking(False)
        bind(self._listener, run_dir, TERMINAL_SOCKET)
        self._path.chmod(0o600)
        self._listener.listen(64)
        self._selector.register(self._listener, selectors.EVENT_READ)

    def fileno(self) -> int:
        return self._selector.fileno()

    @property
    def watched(self) -> bool:
        return any(viewer.size is not None for viewer in self._viewers)

    def people(self) -> int:
        """Viewers that can type. One that has closed its end is gone, although that may not have been read yet."""
        return sum(
            not (viewer.size is None or viewer.only_looks or _is_closed(viewer.socket)) for viewer in self._viewers
        )

    def take(self) -> list[TerminalInput]:
        """What viewers typed, and the sizes that the terminal should have, in order."""
        taken: list[TerminalInput] = []
        for key, events in self._selector.select(0):
            if not isinstance(key.data, _Viewer):
                self._accept()
                continue
            if events & selectors.EVENT_WRITE:
                self._flush(key.data)
            if events & selectors.EVENT_READ and key.data in self._viewers:
                taken += self._read(key.data)
        return taken

    def show(self, data: bytes) -> None:
        self._ring.add(data)
        for viewer in list(self._viewers):
            if viewer.size is not None:
                self._send(viewer, frame(FrameKind.OUTPUT, data))

    def end(self, end: TerminalEnd) -> None:
        """Report the end to every viewer and close. Waits a moment for what they have not read yet."""
        for viewer in list(self._viewers):
            with contextlib.suppress(OSError):
                viewer.socket.settimeout(1.0)
                viewer.socket.sendall(bytes(viewer.unsent) + frame(FrameKind.END, end.to_bytes()))
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()
        for viewer in list(self._viewers):
            self._drop(viewer)
        self._listener.close()
        self._selector.close()

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except BlockingIOError:
            return
        connection.setblocking(False)
        viewer = _Viewer(connection)
        self._viewers.add(viewer)
        self._selector.register(connection, selectors.EVENT_READ, viewer)

    def _read(self, viewer: _Viewer) -> Iterable[TerminalInput]:
        try:
            data = viewer.socket.recv(_CHUNK)
        except BlockingIOError:
            return ()
        except OSError:
            data = b""
        if not data:
            self._drop(viewer)
            return ()
        taken: list[TerminalInput] = []
        try:
            for kind, content in viewer.frames.feed(data):
                taken += self._handle(viewer, kind, content)
        except BadFrame:
            self._drop(viewer)
        return taken

    def _handle(self, viewer: _Viewer, kind: FrameKind, content: bytes) -> Iterable[TerminalInput]:
        if viewer.size is None:
            if kind is not FrameKind.HELLO:
                raise BadFrame("The first frame is a hello.")
            hello = Hello.from_bytes(content)
            viewer.size, viewer.only_looks = hello.size, hello.only_looks
            self._send(viewer, frame(FrameKind.OUTPUT, self._ring.replay()))
            return () if viewer.only_looks else (TerminalInput(size=viewer.size, repaint=True),)
        if viewer.only_looks:
            return ()
        if kind is FrameKind.SIZE:
            viewer.size = TerminalSize.from_bytes(content)
            return (TerminalInput(size=viewer.size),)
        if kind is FrameKind.KEYS:
            return (TerminalInput(size=viewer.size, keys=content),)
        return ()

    def _send(self, viewer: _Viewer, data: bytes) -> None:
        if len(viewer.unsent) + len(data) > _MOST_UNSENT:
            self._drop(viewer)
            return
        viewer.unsent += data
        self._flush(viewer)

    def _flush(self, viewer: _Viewer) -> None:
        try:
            while viewer.unsent:
                del viewer.unsent[: viewer.socket.send(viewer.unsent)]
        except BlockingIOError:
            pass
        except OSError:
            self._drop(viewer)
            return
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if viewer.unsent else 0)
        self._selector.modify(viewer.socket, events, viewer)

    def _drop(self, viewer: _Viewer) -> None:
        if viewer in self._viewers:
            self._viewers.discard(viewer)
            self._selector.unregister(viewer.socket)
            viewer.socket.close()


def _is_closed(connection: socket.socket) -> bool:
    """Whether its other end is gone, also where what it typed last has not been read."""
    waiting = select.poll()
    waiting.register(connection, select.POLLIN)
    return any(events & (select.POLLHUP | select.POLLERR) for _, events in waiting.poll(0))
