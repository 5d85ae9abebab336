"""The symbol, colour and group of each ticket state; names of machine states. Colour alone never carries meaning."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from legion.client.text.terminal import Colour, width


class Group(Enum):
    """Groups of the status screen, in order."""

    NEEDS_YOU = "Needs you"
    AT_WORK = "At work"
    WAITING = "Waiting"
    ENDED = "Ended"


@dataclass(frozen=True)
class StateStyle:
    symbol: str
    ascii: str
    colour: Colour
    group: Group


STYLES: dict[str, StateStyle] = {
    "draft": StateStyle("·", ".", Colour.DIM, Group.WAITING),
    "queued": StateStyle("○", "o", Colour.NONE, Group.WAITING),
    "working": StateStyle("●", "*", Colour.CYAN, Group.AT_WORK),
    "checking": StateStyle("◐", "%", Colour.CYAN, Group.AT_WORK),
    "reviewing": StateStyle("◑", "&", Colour.CYAN, Group.AT_WORK),
    "landing": StateStyle("▲", "^", Colour.BLUE, Group.AT_WORK),
    "done": StateStyle("✓", "+", Colour.GREEN, Group.ENDED),
    "parked": StateStyle("‖", "=", Colour.YELLOW, Group.NEEDS_YOU),
    "failed": StateStyle("✗", "x", Colour.RED, Group.NEEDS_YOU),
    "stopped": StateStyle("■", "#", Colour.YELLOW, Group.ENDED),
}
MACHINE_STATES = {"open": "ready", "quiet": "quiet hours"}
"""Where the word differs from the state's name."""
MACHINE_RUN_STATES = {"placed": "waits for it", "taken": "runs"}
"""Of a run that a machine was given; as above."""
_UNKNOWN = StateStyle("?", "?", Colour.NONE, Group.WAITING)
"""For states of a newer daemon."""


def style_of(state: str) -> StateStyle:
    return STYLES.get(state, _UNKNOWN)


_SIGNS = {
    **{style.symbol: style.ascii for style in STYLES.values()},
    **dict.fromkeys("│┃▌▐▏▎▍▋▊▉█▕", "|"), **dict.fromkeys("─━▔▁▂▃▄▅▆▇", "-"), **dict.fromkeys("╭╮╰╯┌┐└┘├┤┬┴┼", "+"),
    "…": "~", "★": "*", "→": ">", "←": "<", "↑": "^", "↓": "v", "↶": "<", "▸": ">", "▾": "v", "✎": "~", "◌": "o",
}  # fmt: skip


@lru_cache(4096)
def in_ascii(text: str) -> str:
    """The text in as many columns; a character that has no likeness becomes a question mark."""
    if text.isascii():
        return text
    return "".join(letter if letter.isascii() else _SIGNS.get(letter, "?" * max(0, width(letter))) for letter in text)
