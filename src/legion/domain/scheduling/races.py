"""Races: several attempts of one ticket at once, of which the best proven one lands. Pure.

Each attempt is a lane: a ticket of its own, with its own tree, program, model and share of the budget. A lane has
finished when it waits for landing, so its proofs are green. It waits there while another lane may still finish. Then
the smallest change wins; among changes of about the same size, the one that an independent reader ranks first. Where
no usable ranking came, the one in which readers found least.

A race that combines has one lane more, once two have finished: it writes a change from the best parts of theirs, and
wins if it passes every proof that any lane passed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from legion.domain.errors import BadInput
from legion.domain.text import count
from legion.domain.tickets.spec import TicketSpec
from legion.domain.tickets.ticket import ENDED, Parked, ParkReason, State

MOST_LANES = 8
COMBINES = "combines the other attempts"
_LONGEST_DIFF = 12_000
COMPARES = "its reader compares all attempts of the race"
"""Why a change is read that needs no review by itself."""
_WORTH_WAITING = (ParkReason.RESTING, ParkReason.RED_BASELINE)
"""Such a lane continues by itself, and soon."""
_SAME_SIZE = 1.25
_SAME_LINES = 5
"""Changes count as of one size up to this factor and so many lines more."""


class LaneStanding(Enum):
    RUNNING = "running"
    """It may still finish."""
    FINISHED = "finished"
    """Its change is proven and waits for landing."""
    OUT = "out"
    """It has ended, or waits for a person or for a limit of its provider."""


@dataclass(frozen=True, kw_only=True)
class LaneChoice:
    """The program and the model of a lane; empty: as the ticket says."""

    driver: str = ""
    model: str = ""

    @property
    def label(self) -> str:
        return " ".join(filter(None, (self.driver, self.model)))


@dataclass(frozen=True, kw_only=True)
class FinishedLane:
    """What is compared."""

    ticket: int
    lines: int
    findings: int | None
    """How much an independent reader found in the change; None: none has read it."""


def combination(spec: TicketSpec, diffs: Mapping[int, str]) -> TicketSpec | None:
    """The ticket of one more run, which writes a change from the best parts of these, by ticket; None with fewer than
    two. All attempts have the same proofs.
    """
    if len(diffs) < 2:
        return None
    proofs = "\n".join(f"- `{command}`" for command in spec.proofs) or "- the checks of the project"
    parts = [spec.context, f"{_COMBINE}\n\n{proofs}", *(_described(ticket, diff) for ticket, diff in diffs.items())]
    return replace(spec, context="\n\n".join(parts).strip(), max_attempts=1, climbs=False)


_COMBINE = """\
Several agents have made this change, each by itself. Write one change from the best parts of theirs, and none of their
faults. It lands only if it passes all that each of them passed:"""


def _described(ticket: int, diff: str) -> str:
    cut = "\n[... cut ...]" if len(diff) > _LONGEST_DIFF else ""
    return f"## The attempt of ticket {ticket}\n\n```diff\n{diff[:_LONGEST_DIFF]}{cut}\n```"


@dataclass(frozen=True, kw_only=True)
class RaceResult:
    """The winner, or the lane whose reader has to compare them first."""

    winner: int | None = None
    read_first: int | None = None
    why: Mapping[int, str] | None = None
    """By lane: why it won or lost."""


def choices(count: int, drivers: Sequence[str], models: Sequence[str]) -> tuple[LaneChoice, ...]:
    """The lanes that a person asks for: a number of equal ones, or one for each program and model. Raises BadInput."""
    if count and (drivers or models):
        raise BadInput("Pass either a number of lanes or the programs and models to race, not both.")
    for named in (drivers, models):
        if len(set(named)) != len(named):
            raise BadInput("A program or model is named twice; name each once.")
    # Before they are made: a number of a request may be any.
    if not 2 <= (count or len(drivers or [""]) * len(models or [""])) <= MOST_LANES:
        raise BadInput(f"A race has 2 to {MOST_LANES} lanes: pass N=3, --drivers a,b or --models a,b.")
    if count:
        return (LaneChoice(),) * count
    return tuple(LaneChoice(driver=driver, model=model) for driver in drivers or [""] for model in models or [""])


def share(budget: float | None, lanes: int) -> float | None:
    """Each lane's part of the ticket's budget."""
    return None if budget is None else budget / lanes


def standing(state: State | None, parked: Parked | None) -> LaneStanding:
    """Of one lane; without a state it was dropped."""
    if state is State.LANDING:
        return LaneStanding.FINISHED
    if state is None or state in ENDED:
        return LaneStanding.OUT
    if parked is not None and parked.reason not in _WORTH_WAITING:
        return LaneStanding.OUT
    return LaneStanding.RUNNING


def is_open(standings: Sequence[LaneStanding]) -> bool:
    """Whether finished lanes wait for others."""
    return LaneStanding.RUNNING in standings


def decide(
    finished: Sequence[FinishedLane], rankings: Sequence[Mapping[int, int]] = (), combined: int | None = None
) -> RaceResult:
    """Among lanes that have finished; there is at least one. Each ranking is a reader's: the places of lanes.
    `combined`: the lane that combines the others.
    """
    if any(one.ticket == combined for one in finished):
        lost = f"proven, and ticket {combined} combines it with the others"
        why = {one.ticket: lost for one in finished} | {combined or 0: "passes every proof that an attempt passed"}
        return RaceResult(winner=combined, why=why)
    smallest = min(one.lines for one in finished)
    near = [one for one in finished if one.lines <= smallest * _SAME_SIZE + _SAME_LINES]
    order = sorted(near, key=lambda one: (one.lines, one.ticket))
    ranking = next((one for one in rankings if all(lane.ticket in one for lane in near)), None)
    if len(near) == 1 or ranking is None:
        unread = [one.ticket for one in order if one.findings is None]
        if len(near) > 1 and unread:
            return RaceResult(read_first=unread[0])
        best = min(order, key=lambda one: one.findings or 0)
    else:
        places = ranking
        best = min(order, key=lambda one: places[one.ticket])
    ranked = ranking is not None
    return RaceResult(winner=best.ticket, why={one.ticket: _why(one, best, near, ranked=ranked) for one in finished})


def _why(lane: FinishedLane, best: FinishedLane, near: Sequence[FinishedLane], *, ranked: bool) -> str:
    lines = count(lane.lines, "line")
    if lane is best:
        if len(near) == 1:
            return f"proven, and the smallest change ({lines})"
        return f"proven, of the smallest changes ({lines}), and {_preferred(best, near, ranked=ranked)}"
    if lane not in near:
        return f"proven, and larger ({lines}) than the change of ticket {best.ticket} ({count(best.lines, 'line')})"
    if ranked:
        return f"proven, of about the same size ({lines}), and a reader ranks ticket {best.ticket} first"
    if (lane.findings or 0) > (best.findings or 0):
        return f"proven, of about the same size ({lines}), and readers found more in it than in ticket {best.ticket}"
    return f"proven, and as good as ticket {best.ticket}, which is smaller or came first"


def _preferred(best: FinishedLane, near: Sequence[FinishedLane], *, ranked: bool) -> str:
    if ranked:
        return "an independent reader ranks it first"
    if all(one.findings == best.findings for one in near):
        return "the smallest or the first of those"
    return "readers found least in it"
