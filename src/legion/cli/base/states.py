"""States and verdicts as cells of a command's output."""

from __future__ import annotations

from legion.cli.base.output import Cell, Screen, sanitize
from legion.client.text.states import STYLES as STYLES
from legion.client.text.states import Group as Group
from legion.client.text.states import style_of as style_of


def symbol(screen: Screen, state: str) -> str:
    return style_of(state).symbol if screen.unicode else style_of(state).ascii


def state_cell(screen: Screen, state: str) -> Cell:
    return Cell(f"{symbol(screen, state)} {state}", style_of(state).colour)


def verdict_cell(screen: Screen, verdict: str) -> Cell:
    """A receipt's verdict: green, red, broken or setup."""
    state = {"green": "done", "red": "failed"}.get(verdict, "parked")
    return Cell(f"{symbol(screen, state)} {verdict}", style_of(state).colour)


def trusted(name: str) -> str:
    """Of the receipt of a check that a person trusts although the trial showed it to be blind."""
    return f"trusted by {sanitize(name)} although it stays green when the code is broken"
