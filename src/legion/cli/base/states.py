"""States and verdicts as cells of a command's output."""

from __future__ import annotations

from legion.cli.base.output import Cell, Screen
from legion.client.text.states import STYLES as STYLES
from legion.client.text.states import Group as Group
from legion.client.text.states import style_of as style_of


def symbol(screen: Screen, state: str) -> str:
    return style_of(state).symbol if screen.unicode else style_of(state).ascii


def state_cell(screen: Screen, state: str) -> Cell:
    return Cell(f"{symbol(screen, state)} {state}", style_of(state).colour)
