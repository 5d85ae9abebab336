"""The digest: the board since a leader's last turn, in few lines. A limit of characters holds whatever the board is.

Numbers of tickets are joined to ranges; only what may need the leader has a line of its own, and each kind of line has
a limit. Titles and reasons are texts of others, so they are cut, kept on one line and quoted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from legion.domain.tickets.ticket import State

LONGEST = 2400
"""Characters of a digest."""
_TITLE, _REASON = 40, 56
_MOST = {"failed": 5, "parked": 5, "asked": 8, "at work": 5, "plans": 4, "lessons": 12}
_RANGES = 10
_AT_WORK = (State.WORKING, State.CHECKING, State.REVIEWING, State.LANDING)


@dataclass(frozen=True, kw_only=True)
class TicketFact:
    id: int
    title: str
    state: State
    reason: str = ""
    attempt: int = 1
    changed: bool = False
    """It moved since the leader's last turn."""
    created: bool = False
    """It was dispatched since then."""


@dataclass(frozen=True, kw_only=True)
class QuestionFact:
    id: int
    source: str
    """The asking ticket or agent."""
    mine: bool
    """The leader may answer it."""


@dataclass(frozen=True, kw_only=True)
class PlanFact:
    name: str
    state: str
    goal: str


@dataclass(frozen=True, kw_only=True)
class BoardFacts:
    """What a digest is made of: live tickets, ended ones that moved since the last turn, and what waits."""

    tickets: Sequence[TicketFact] = ()
    questions: Sequence[QuestionFact] = ()
    plans: Sequence[PlanFact] = ()
    """Open ones."""
    target_red: bool = False
    paused: bool = False
    lessons: Sequence[int] = ()
    """Proposed ones."""
    left: float | None = None
    """Dollars that the leader can still give."""


def digest(facts: BoardFacts) -> str:
    lines = [f"Board: {_counts(facts)}."]
    if facts.target_red:
        lines.append("The target itself fails its checks.")
    if facts.paused:
        lines.append("The project is paused: nothing new starts.")
    moved = [one for one in facts.tickets if one.changed]
    for label, states in (("landed", (State.DONE,)), ("stopped", (State.STOPPED,))):
        lines += _numbers(f"{label} since your last turn", (one.id for one in moved if one.state in states))
    lines += _numbers("new since then", (one.id for one in facts.tickets if one.created))
    lines += _listed("failed", [one for one in moved if one.state is State.FAILED])
    lines += _listed("parked", [one for one in facts.tickets if one.state is State.PARKED])
    lines += _listed("at work", [one for one in facts.tickets if one.state in _AT_WORK])
    lines += _questions(facts.questions)
    lines += _plans(facts.plans)
    lines += _numbers("lessons proposed (legion-note accepts one)", facts.lessons[-_MOST["lessons"] :])
    if facts.left is not None:
        lines.append(f"Money left to give: {facts.left:.2f} dollars.")
    return _cut(lines)


def ranges(numbers: Iterable[int]) -> str:
    """1-4, 7, 9-12"""
    found: list[list[int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in found)


def one_line(text: str, longest: int) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= longest else f"{plain[: longest - 1].rstrip()}…"


def _counts(facts: BoardFacts) -> str:
    counted = Counter(one.state for one in facts.tickets)
    return ", ".join(f"{counted[state]} {state.value}" for state in State if counted[state]) or "no tickets"


def _numbers(label: str, numbers: Iterable[int]) -> list[str]:
    shown = _some(ranges(numbers).split(", "), _RANGES)
    return [f"{label.capitalize()}: {shown}."] if shown else []


def _listed(label: str, tickets: Sequence[TicketFact]) -> list[str]:
    """The last ones with title and reason, the others by number."""
    if not tickets:
        return []
    most = _MOST[label]
    own, rest = tickets[-most:], tickets[:-most]
    lines = [f"{label.capitalize()}:", *(f"- {_ticket(one)}" for one in own)]
    return [*lines, f"- and {_some(ranges(one.id for one in rest).split(', '), _RANGES)}"] if rest else lines


def _ticket(one: TicketFact) -> str:
    state = f" {one.state.value}" if one.state in _AT_WORK else ""
    attempt = f", attempt {one.attempt}" if one.attempt > 1 else ""
    reason = f": {one_line(one.reason, _REASON)}" if one.reason else ""
    return f'{one.id} "{one_line(one.title, _TITLE)}"{state}{attempt}{reason}'


def _questions(asked: Sequence[QuestionFact]) -> list[str]:
    if not asked:
        return []
    own = [f"{one.id} of {one.source}" for one in asked if one.mine]
    rest = [str(one.id) for one in asked if not one.mine]
    most = _MOST["asked"]
    lines = [f"Questions for you (legion-answer): {_some(own, most)}."] if own else []
    return [*lines, f"Questions that wait for the person: {_some(rest, 3 * most)}."] if rest else lines


def _plans(plans: Sequence[PlanFact]) -> list[str]:
    if not plans:
        return []
    most = _MOST["plans"]
    lines = ["Plans:", *(f'- {one.name} {one.state} "{one_line(one.goal, _TITLE)}"' for one in plans[-most:])]
    return [*lines, f"- and {len(plans) - most} older"] if len(plans) > most else lines


def _some(words: Sequence[str], most: int) -> str:
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more


def _cut(lines: Sequence[str]) -> str:
    """The last lines are the least important."""
    note = "(cut here; legion-check lists all)"
    kept: list[str] = []
    room = LONGEST - len(note) - 1
    for line in lines:
        if len(line) + 1 > room:
            return "\n".join([*kept, note])
        kept.append(line)
        room -= len(line) + 1
    return "\n".join(kept)
