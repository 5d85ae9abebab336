"""Tells whether a person held the conversation of a run in a terminal."""

from __future__ import annotations

from legion.domain.runs import Run
from legion.jobs.board import Board
from legion.runner.spec import RunnerError, read_spec


def was_wheel(context: Board, this_run: Run) -> bool:
    """Whether a person held the conversation in this run."""
    try:
        return read_spec(context.data.runs / this_run.name).options.get("wheel") is True
    except RunnerError:
        return False
