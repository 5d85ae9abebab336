"""The person's terminal in front of a run's: keys go there, output comes back, Ctrl-Q leaves.

The connection goes to the runner itself, so it survives a restart of the daemon. Sequences by which a program could
reach past the screen, such as the clipboard, are left out.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import socket
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from legion.client.output_filter import OutputFilter
from legion.wire.errors import BadInput, LegionError
from legion.wire.terminal import BadFrame, FrameKind, FrameReader, Hello, TerminalEnd, TerminalSize, frame

_ESCAPE, _CTRL_Q = 0x1B, 0x11
_LONGEST = 64
"""Bytes of a key's sequence."""
_PASTE_BEGINS, _PASTE_ENDS = b"\x1b[200~", b"\x1b[201~"
_PASTE_PAUSE = 2.0
"""Seconds without a byte after which a paste has ended, although its end was lost: there must be a way out."""
_KEY = re.compile(rb"\x1b\[(\d+)(?::\d*)?(?::(\d*))?;(\d+)(?::(\d+))?(?:;[\d:]*)?u")
"""The key, and in a keyboard's other layout the key at its place; modifiers, and whether it is pressed or released."""
_OTHER_KEY = re.compile(rb"\x1b\[27;(\d+);(\d+)~")
_Q = (b"113", b"81")
_CTRL = 4
_LOCKS = 64 | 128
"""Caps lock and num lock."""
_RELEASED = b"3"


class DetachKey:
    def __init__(self) -> None:
        self._sequence = b""
        """What there is of a sequence that has not ended."""
        self._pastes = False
        self._typed_at = 0.0

    def cut(self, typed: bytes) -> tuple[bytes, bool]:
        """What goes to the program, and whether the person leaves; what follows the key is dropped."""
        now = time.monotonic()
        self._pastes = self._pastes and now - self._typed_at < _PASTE_PAUSE
        self._typed_at = now
        start = 0
        for at, byte in enumerate(typed):
            if byte == _CTRL_Q and not self._pastes:
                return typed[:at], True
            if byte == _ESCAPE:
                self._sequence, start = b"\x1b", at
            elif self._sequence:
                self._sequence += bytes((byte,))
                if self._ends_here() and self._leaves():
                    return typed[:start], True
        return typed, False

    def _ends_here(self) -> bool:
        if len(self._sequence) == 2:
            return not self._sequence.endswith(b"[")
        return 0x40 <= self._sequence[-1] <= 0x7E or len(self._sequence) > _LONGEST

    def _leaves(self) -> bool:
        """Of a complete sequence."""
        sequence, self._sequence = self._sequence, b""
        if sequence in (_PASTE_BEGINS, _PASTE_ENDS):
            self._pastes = sequence == _PASTE_BEGINS
            return False
        return not self._pastes and _is_ctrl_q(sequence)


def _is_ctrl_q(sequence: bytes) -> bool:
    if found := _KEY.fullmatch(sequence):
        key, base, modifiers, event = found.groups()
        return (key in _Q or base in _Q) and event != _RELEASED and _is_ctrl(modifiers)
    found = _OTHER_KEY.fullmatch(sequence)
    return found is not None and found[2] in _Q and _is_ctrl(found[1])


def _is_ctrl(modifiers: bytes) -> bool:
    return (int(modifiers) - 1) & ~_LOCKS == _CTRL


_OFF = (2004, 9, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 1, 5, 6, 69, 2026)
_RESTORE = (
    b"".join(b"\x1b[?%dl" % mode for mode in _OFF)
    + b"\x1b[?7h\x1b[?25h\x1b[4l\x1b[<u\x1b[>4m\x1b[0 q\x1b(B\x0f\x1b>\x1b[0m\x1b[r\x1b]2;\x07\x1b[23;0t"
)
"""What an interactive program may have left switched on: mouse, paste, cursor, keys, letters, margins, the title. Some
of these move the cursor.
"""
_KEEP_TITLE = b"\x1b[22;0t"
_OTHER_SCREEN = re.compile(rb"\x1b\[\?(?:\d+;)*(?:47|1047|1049)(?:;\d+)*([hl])")
_LEAVE_OTHER_SCREEN, _BELOW_ALL = b"\x1b[?1049l\x1b[J", b"\x1b[999;1H\r\n\x1b[J"
"""Back to where the person was; or, after a program that drew among their own lines, to a line below it."""
_CHUNK = 1 << 16
_QUIET, _LONGEST_PASTE = 0.05, 2.0
"""Seconds."""


class How(Enum):
    """Why the relay ended."""

    DETACHED = "detached"
    ENDED = "ended"
    """The program has ended."""
    LOST = "lost"
    """The runner is gone and sent no end."""


@dataclass(frozen=True, kw_only=True)
class RelayEnd:
    how: How
    end: TerminalEnd | None = None


def window_size(handle: int) -> TerminalSize:
    try:
        size = os.get_terminal_size(handle)
    except OSError:
        return TerminalSize()
    return TerminalSize(columns=size.columns, rows=size.lines).usable


def refuse_no_terminal() -> None:
    """Raises BadInput where nothing can be relayed."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise BadInput("Attaching needs a terminal; use `legion log N` to read what an agent prints.")


def relay(path: str, *, message: str = "", only_looks: bool = False, leaves: bool = True) -> RelayEnd:
    """Until the person leaves or the program ends; `leaves`: Ctrl-Q is our key, not the program's. Raises LegionError
    where no runner listens.

    The message is printed first. It may name the key that leaves, so it appears when that key has its effect: before,
    the terminal takes Ctrl-Q as its own key and drops it.
    """
    refuse_no_terminal()
    screen = sys.stdout.fileno()
    with _connected(path) as runner, _raw(sys.stdin.fileno()), _resized() as resized:
        _write(screen, _KEEP_TITLE + (f"{message}\r\n".encode() if message else b""))
        relaying = _Relay(runner, resized, only_looks=only_looks, leaves=leaves)
        try:
            return relaying.run()
        finally:
            with contextlib.suppress(OSError):
                _write(screen, _RESTORE + (_LEAVE_OTHER_SCREEN if relaying.on_other_screen else _BELOW_ALL))


class _Relay:
    def __init__(self, runner: socket.socket, resized: int, *, only_looks: bool, leaves: bool) -> None:
        self._runner = runner
        self._resized = resized
        self._detach_key = DetachKey() if leaves else None
        self.on_other_screen = False
        """The program draws on the screen that terminals keep next to the one with the person's own lines."""
        self._keys, self._screen = sys.stdin.fileno(), sys.stdout.fileno()
        self._frames = FrameReader()
        self._filter = OutputFilter()
        self._size = window_size(self._screen)
        self._send(FrameKind.HELLO, Hello(size=self._size, only_looks=only_looks).to_bytes())

    def run(self) -> RelayEnd:
        while True:
            ready, _, _ = select.select([self._keys, self._runner, self._resized], [], [])
            if self._runner in ready and (end := self._show()) is not None:
                return end
            if self._resized in ready:
                os.read(self._resized, 4096)
                self._follow_size()
            if self._keys in ready:
                # The signal of a resize can arrive later than keys that were typed after it.
                self._follow_size()
                typed = os.read(self._keys, 4096)
                kept, left = self._detach_key.cut(typed) if self._detach_key is not None else (typed, False)
                if kept:
                    self._send(FrameKind.KEYS, kept)
                if left or not typed:
                    return RelayEnd(how=How.DETACHED)

    def _show(self) -> RelayEnd | None:
        try:
            data = self._runner.recv(_CHUNK)
        except OSError:
            data = b""
        if not data:
            return RelayEnd(how=How.LOST)
        try:
            for kind, content in self._frames.feed(data):
                if kind is FrameKind.OUTPUT:
                    drawn = self._filter.feed(content)
                    for switched in _OTHER_SCREEN.finditer(drawn):
                        self.on_other_screen = switched[1] == b"h"
                    _write(self._screen, drawn)
                elif kind is FrameKind.END:
                    return RelayEnd(how=How.ENDED, end=TerminalEnd.from_bytes(content))
        except BadFrame:
            return RelayEnd(how=How.LOST)
        return None

    def _follow_size(self) -> None:
        size = window_size(self._screen)
        if size != self._size:
            self._size = size
            self._send(FrameKind.SIZE, size.to_bytes())

    def _send(self, kind: FrameKind, data: bytes) -> None:
        # A runner that is gone is noticed where its output is read.
        with contextlib.suppress(OSError):
            self._runner.sendall(frame(kind, data))


def _write(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(handle, view) :]
        except BlockingIOError:
            select.select([], [handle], [])


@contextlib.contextmanager
def _connected(path: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as runner, _reachable(path) as address:
        try:
            runner.connect(address)
        except OSError as gone:
            raise LegionError(f"The terminal is gone ({gone.strerror}): look with `legion status`.") from None
        yield runner


@contextlib.contextmanager
def _reachable(path: str) -> Iterator[str]:
    """A socket's address holds about a hundred bytes; on Linux a handle names a folder with a longer path."""
    if len(os.fsencode(path)) < 100 or sys.platform != "linux":
        yield path
        return
    folder, _, name = path.rpartition("/")
    try:
        handle = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as gone:
        raise LegionError(f"The terminal is gone ({gone.strerror}): look with `legion status`.") from None
    try:
        yield f"/proc/self/fd/{handle}/{name}"
    finally:
        os.close(handle)


@contextlib.contextmanager
def _raw(keys: int) -> Iterator[None]:
    """Every key reaches the program, Ctrl-C too. Afterwards the terminal is as it was, and what was typed for the
    program, perhaps the rest of a paste, is dropped: the person's shell would run it.
    """
    before = termios.tcgetattr(keys)
    try:
        # What was typed meanwhile is kept.
        tty.setraw(keys, termios.TCSANOW)
        yield
    finally:
        _drop_typed(keys)
        termios.tcsetattr(keys, termios.TCSAFLUSH, before)


def _drop_typed(keys: int) -> None:
    """Read until the terminal is quiet: flushing it drops only what has arrived, and a paste may still be under way."""
    ends = time.monotonic() + _LONGEST_PASTE
    with contextlib.suppress(OSError):
        while time.monotonic() < ends and select.select([keys], [], [], _QUIET)[0] and os.read(keys, _CHUNK):
            pass


@contextlib.contextmanager
def _resized() -> Iterator[int]:
    """A handle that is readable when the person's terminal has another size."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)

    def note(_number: int, _frame: object) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(writing, b"w")

    before: Callable[..., object] | int | None = signal.signal(signal.SIGWINCH, note)
    try:
        yield reading
    finally:
        signal.signal(signal.SIGWINCH, before)
        os.close(reading)
        os.close(writing)
