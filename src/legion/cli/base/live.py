"""A live screen that is redrawn on events and restores the terminal, and retries while the daemon restarts."""

from __future__ import annotations

import queue
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

from legion.cli.base.command import CommandCall, as_json
from legion.cli.base.output import Screen
from legion.client.http import NotRunning
from legion.client.legion import Legion
from legion.wire.board import Status
from legion.wire.errors import LegionError

Result = TypeVar("Result")

RECONNECT_SECONDS = 30.0
"""Seconds to wait for a daemon that went away; a restart takes two."""
REDRAW_SECONDS = 5.0
"""Seconds after which the screen is redrawn without an event, because it shows times."""
COALESCE_SECONDS = 0.1
"""Seconds within which events are drawn together."""


def with_retry(call: CommandCall, ask: Callable[[Legion], Result]) -> Result:
    """Send a request; if the daemon is away, retry until it is back."""
    try:
        return ask(call.legion())
    except NotRunning:
        call.say("Legion went away; waiting until it is back.")
    deadline = time.monotonic() + RECONNECT_SECONDS
    while time.monotonic() < deadline:
        try:
            return ask(call.again())
        except NotRunning:
            select.select([], [], [], 0.25)
    raise NotRunning("Legion is down; run `legion up`, then this command again.")


def follow_status(call: CommandCall, all_tickets: bool, screen_of: Callable[[Status, Screen], list[str]]) -> None:
    """Redraw the status until interrupted."""
    tty = call.screen.tty and not call.json
    with _full_screen() if tty else _nothing():
        before = ""
        changes = _EventSignal(call)
        while True:
            now = with_retry(call, lambda legion: legion.status(call.cwd, all_tickets))
            changes.listen(now.last_event)
            if call.json:
                shown = as_json(now, indent=False)
            else:
                screen = Screen.of(sys.stdout, plain=not call.screen.colours)
                lines = screen_of(now, screen)
                shown = "\n".join(lines[: screen.height - 1] if tty and screen.height else lines)
            if tty:
                sys.stdout.write("\x1b[H" + shown.replace("\n", "\x1b[K\n") + "\x1b[K\x1b[J")
                sys.stdout.flush()
            elif shown != before:
                call.out(shown)
            before = shown
            changes.wait(REDRAW_SECONDS if tty else None)


class _EventSignal:
    """Signals that an event happened or the daemon went away."""

    def __init__(self, call: CommandCall) -> None:
        self._call = call
        # A signal handler that raises inside queue.Queue would leave its lock held; SimpleQueue is implemented in C.
        self._changes: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._listener: threading.Thread | None = None

    def listen(self, after: int) -> None:
        """Follow events in a thread; a second call only replaces a thread whose connection was lost."""
        if self._listener is None or not self._listener.is_alive():
            self._listener = threading.Thread(target=self._follow, args=(self._call.legion(), after), daemon=True)
            self._listener.start()

    def wait(self, seconds: float | None) -> None:
        try:
            self._changes.get(timeout=seconds)
        except queue.Empty:
            return
        select.select([], [], [], COALESCE_SECONDS)
        while not self._changes.empty():
            self._changes.get_nowait()

    def _follow(self, legion: Legion, after: int) -> None:
        try:
            for event in legion.events(after):
                if event is not None:
                    self._changes.put(None)
        except LegionError:
            pass
        self._changes.put(None)


@contextmanager
def _full_screen() -> Iterator[None]:
    def end(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    sys.stdout.write("\x1b[?1049h\x1b[?25l")
    try:
        yield
    finally:
        sys.stdout.write("\x1b[?25h\x1b[?1049l")
        sys.stdout.flush()
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _nothing() -> Iterator[None]:
    yield
