"""The symbol, colour and group of each ticket state. Colour alone never carries meaning."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from legion.cli.base.output import Cell, Colour, Screen


class Group(Enum):
    """Groups of the status screen, in order."""

    NEEDS_YOU = "Needs you"
    AT_WORK = "At work"
    WAITING = "Waiting"
    ENDED = "Ended"


@dataclass(frozen=True)
class Look:
    symbol: str
    ascii: str
    colour: Colour
    group: Group


LOOKS: dict[str, Look] = {
    "draft": Look("·", ".", Colour.DIM, Group.WAITING),
    "queued": Look("○", "o", Colour.NONE, Group.WAITING),
    "working": Look("●", "*", Colour.CYAN, Group.AT_WORK),
    "checking": Look("◐", "%", Colour.CYAN, Group.AT_WORK),
    "reviewing": Look("◑", "&", Colour.CYAN, Group.AT_WORK),
    "landing": Look("▲", "^", Colour.BLUE, Group.AT_WORK),
    "done": Look("✓", "+", Colour.GREEN, Group.ENDED),
    "parked": Look("‖", "=", Colour.YELLOW, Group.NEEDS_YOU),
    "failed": Look("✗", "x", Colour.RED, Group.NEEDS_YOU),
    "stopped": Look("■", "#", Colour.YELLOW, Group.ENDED),
}
_UNKNOWN = Look("?", "?", Colour.NONE, Group.WAITING)
"""For states of a newer daemon."""


def look(state: str) -> Look:
    return LOOKS.get(state, _UNKNOWN)


def symbol(screen: Screen, state: str) -> str:
    return look(state).symbol if screen.unicode else look(state).ascii


def state_cell(screen: Screen, state: str) -> Cell:
    return Cell(f"{symbol(screen, state)} {state}", look(state).colour)


def verdict_cell(screen: Screen, verdict: str) -> Cell:
    """A receipt's verdict: green, red or broken."""
    state = {"green": "done", "red": "failed"}.get(verdict, "parked")
    return Cell(f"{symbol(screen, state)} {verdict}", look(state).colour)
