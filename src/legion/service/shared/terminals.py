"""Waits for the terminal of a run; a person that takes over a conversation interrupts its agent between two calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path

from legion.domain.runs import Run
from legion.jobs.agent.resume_prompt import open_calls
from legion.jobs.board import Board
from legion.jobs.supervise.wait import was_wheel
from legion.runner import launch
from legion.runner.journal import JournalEvent, JournalReader
from legion.runner.spec import TERMINAL_SOCKET, RunnerError
from legion.wire.terminal import OpenTerminal

PATIENCE = 15.0
"""Seconds of one request; the client asks again."""
_LOOK_AGAIN = 0.1
STILL_WAITS = OpenTerminal(run="", socket="", message="Waiting for a safe moment of the agent")


def wait_for_terminal(
    context: Board,
    look: Callable[[], OpenTerminal | Run | None],
    cut: Callable[[], bool],
    *,
    waited: float,
    patience: float,
) -> OpenTerminal:
    """The terminal, once there is one; an answer without a socket: ask again.

    `look` returns the terminal or another answer, or the run that works alone and may be interrupted. `cut` records
    it before the interrupt is sent; False: the person gave up. `waited` is how long the client has asked before.
    """
    began = time.monotonic()
    alone: _AloneRun | None = None
    while True:
        run = look()
        if isinstance(run, OpenTerminal):
            return run
        passed = time.monotonic() - began
        if run is not None:
            alone = alone or _AloneRun(context.data.runs / run.name)
            alone.interrupt_when_safe(cut, patient=waited + passed < context.user.daemon.attach_timeout)
        if passed > patience:
            return STILL_WAITS
        time.sleep(_LOOK_AGAIN)


class _AloneRun:
    """A run that is interrupted once, between two calls; a call that takes too long is cut off."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._journal = JournalReader(folder)
        self._events: list[JournalEvent] = []
        self._interrupted = False

    def interrupt_when_safe(self, cut: Callable[[], bool], *, patient: bool) -> None:
        if self._interrupted:
            return
        self._events += self._journal.read_on()
        begun = any(event.kind == "conversation" for event in self._events)
        if patient and (not begun or open_calls(self._events)):
            return
        if cut():
            try:
                self._interrupted = launch.interrupt(self._folder)
            except RunnerError:
                return


def terminal_of(context: Board, run: Run) -> Path | None:
    socket = context.data.runs / run.name / TERMINAL_SOCKET
    return socket if socket.exists() and launch.is_held(socket.parent) else None


def has_opened(context: Board, recent: Iterable[Run], began: float) -> bool:
    """Whether a terminal opened since the person began to wait. It does not open for them again."""
    return any(run.started_at > began and was_wheel(context, run) for run in recent)


def leave(context: Board, run: Run) -> int | None:
    """Give the conversation of this run back, unless other people are at it: how many. None: it was not open."""
    return None if terminal_of(context, run) is None else launch.leave(context.data.runs / run.name)
