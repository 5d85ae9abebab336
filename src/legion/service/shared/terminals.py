"""Finds the terminal of a run and interrupts a run between two calls, for a person that takes over its conversation."""

from __future__ import annotations

from pathlib import Path

from legion.domain.runs import Run
from legion.jobs.agent.resume_prompt import open_calls
from legion.jobs.context import Context
from legion.runner import launch
from legion.runner.journal import read_journal
from legion.runner.spec import TERMINAL_SOCKET, RunnerError

PATIENCE = 15.0
"""Seconds of one request; the client asks again."""
LOOK_AGAIN = 0.1
SAFE_MOMENT = 20.0
"""Seconds for which a call of the agent may keep a person waiting; then it is cut off."""


def interrupt_when_safe(context: Context, run: Run, *, patient: bool) -> bool:
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
