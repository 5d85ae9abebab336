"""A ticket in short, for every client: its state's symbol, colour and group, and what it does or waits for."""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from legion.client.text.terminal import Colour, count, duration, numbers, sanitize, width
from legion.wire.board import Status
from legion.wire.tickets import TicketLine, UsageLine


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


def dollars(amount: float) -> str:
    """With cents, and more digits where there is less than one."""
    return f"${amount:.2f}" if amount >= 0.01 or amount == 0 else f"${amount:.4f}"


def cost(usage: UsageLine, unknown: str = "not known") -> str:
    return unknown if usage.unpriced and not usage.usd else dollars(usage.usd)


def group_of(ticket: TicketLine) -> Group:
    if ticket.question is not None:
        return Group.NEEDS_YOU
    if ticket.parked_until is not None:
        return Group.WAITING
    if ticket.held_up_by and style_of(ticket.state).group is Group.WAITING:
        return Group.NEEDS_YOU
    return style_of(ticket.state).group


def questions_wait(status: Status, *, person: str = "you") -> str:
    """The inbox is one for all projects, so it says which part of it is not about this one."""
    waiting = f"{count(status.questions, 'question waits', 'questions wait')} for {person}"
    elsewhere = status.questions_elsewhere
    if not elsewhere:
        return waiting
    return f"{waiting}, {'all' if elsewhere == status.questions else elsewhere} in other projects"


def doing(ticket: TicketLine) -> str:
    """What it does, and for how long: counted here, so that it is right whenever it is drawn."""
    since = ticket.doing_since
    return ticket.doing if since is None else f"{ticket.doing}, {duration(time.time() - since)}"


def about(ticket: TicketLine) -> str:
    """What the ticket is doing or waits for, in short; and why, where an attempt was sent back."""
    sent_back = ticket.state == "queued" and ticket.attempt > 0
    if sent_back:
        both = [ticket.reason, ticket.doing]
    elif ticket.state == "parked":
        both = [ticket.doing, ticket.reason]
    else:
        both = [doing(ticket) or ticket.reason]
    detail = sanitize("; ".join(part for part in both if part))
    parts = []
    if ticket.unchecked and "unchecked" not in detail:
        parts.append("unchecked")
    if ticket.unproven:
        parts.append(f"{count(ticket.unproven, 'criterion', 'criteria')} without proof")
    if ticket.held_up_by and "held up" not in detail:
        parts.append(f"held up by {numbers(ticket.held_up_by)}")
    if ticket.conflicts_with:
        where = f" in {', '.join(ticket.conflicts_in[:2])}" if ticket.conflicts_in else ""
        parts.append(f"will conflict with {_others(ticket.conflicts_with)}{where}")
    # The reason of a failure names the number of attempts, counted since a person last intervened.
    if ticket.attempt > 1 and ticket.state != "failed":
        parts.append(f"attempt {ticket.attempt}/{ticket.max_attempts}")
    if detail:
        parts.append(detail)
    return ", ".join(parts)


def _others(ids: list[int]) -> str:
    return ", ".join("what landed" if id == 0 else f"#{id}" for id in ids)
