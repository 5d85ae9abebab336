"""Waits for the terminal of a run; a person that takes over a conversation interrupts its agent between two calls."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from legion.domain.runs import Run
from legion.jobs.agent.resume_prompt import open_calls
from legion.jobs.context import Context
from legion.runner import launch
from legion.runner.journal import read_journal
from legion.runner.spec import TERMINAL_SOCKET, RunnerError
from legion.wire.terminal import OpenTerminal

_PATIENCE = 15.0
"""Seconds of one request; the client asks again."""
_LOOK_AGAIN = 0.1
_SAFE_MOMENT = 20.0
"""Seconds for which a call of the agent may keep a person waiting; then it is cut off."""


@dataclass(frozen=True, kw_only=True)
class TerminalLook:
    """What one look at a conversation found."""

    opened: OpenTerminal | None = None
    """The answer, if there is one already: a terminal, or that there is none to look at."""
    interrupts: Run | None = None
    """The run that works alone while a person wants its conversation."""


def wait_for_terminal(context: Context, look: Callable[[], TerminalLook], *, waited: float) -> OpenTerminal:
    """The terminal, once there is one; an answer without a socket: ask again.

    An agent that works alone is interrupted once, between two calls. `waited` is how long the client has asked before.
    """
    began = time.monotonic()
    interrupted: set[int] = set()
    while True:
        seen = look()
        if seen.opened is not None:
            return seen.opened
        run = seen.interrupts
        if run is not None and run.id not in interrupted:
            patient = waited + time.monotonic() - began < _SAFE_MOMENT
            interrupted |= {run.id} if _interrupt_when_safe(context, run, patient=patient) else set()
        if time.monotonic() - began > _PATIENCE:
            return OpenTerminal(run="", socket="", message="Waiting for the agent to reach a safe moment")
        time.sleep(_LOOK_AGAIN)


def _interrupt_when_safe(context: Context, run: Run, *, patient: bool) -> bool:
    """Between two calls, so that none is cut off; a call that takes very long is. False: not yet."""
    folder = context.data.runs / run.name
    journal = read_journal(folder)
    if not any(event.kind == "conversation" for event in journal) and patient:
        # It has not begun yet. Where it never does, the run ends by itself.
        return False
    if open_calls(journal) and patient:
        return False
    try:
        return launch.interrupt(folder)
    except RunnerError:
        return False


def terminal_of(context: Context, run: Run) -> Path | None:
    socket = context.data.runs / run.name / TERMINAL_SOCKET
    return socket if socket.exists() and launch.is_held(socket.parent) else None
