"""Races: several attempts of one ticket at once, of which the best proven one lands. Pure.

Each attempt is a lane: a ticket of its own, with its own tree, program, model and share of the budget. A lane has
finished when it waits for landing, so its proofs are green. It waits there while another lane may still finish. Then
the smallest change wins; among changes of about the same size, the one in which an independent reader found least.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from legion.domain.errors import BadInput
from legion.domain.tickets.ticket import ENDED, Parked, ParkReason, State

MOST_LANES = 8
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


@dataclass(frozen=True, kw_only=True)
class RaceResult:
    """The winner, or the lanes that an independent reader has to read first."""

    winner: int | None = None
    unread: tuple[int, ...] = ()
    why: Mapping[int, str] | None = None
    """By lane: why it won or lost."""


def choices(count: int, drivers: Sequence[str], models: Sequence[str]) -> tuple[LaneChoice, ...]:
    """The lanes that a person asks for: a number of equal ones, or one for each program and model. Raises BadInput."""
    if count and (drivers or models):
        raise BadInput("Pass either a number of lanes or the programs and models to race, not both.")
    for named in (drivers, models):
        if len(set(named)) != len(named):
            raise BadInput("A program or model is named twice; name each once.")
    lanes = (
        tuple(LaneChoice() for _ in range(count))
        if count
        else tuple(LaneChoice(driver=driver, model=model) for driver in drivers or [""] for model in models or [""])
    )
    if not 2 <= len(lanes) <= MOST_LANES:
        raise BadInput(f"A race has 2 to {MOST_LANES} lanes: pass N=3, --drivers a,b or --models a,b.")
    return lanes


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


def decide(finished: Sequence[FinishedLane]) -> RaceResult:
    """Among lanes that have finished; there is at least one."""
    smallest = min(one.lines for one in finished)
    near = [one for one in finished if one.lines <= smallest * _SAME_SIZE + _SAME_LINES]
    unread = tuple(one.ticket for one in near if one.findings is None)
    if len(near) > 1 and unread:
        return RaceResult(unread=unread)
    best = min(near, key=lambda one: (one.findings or 0, one.lines, one.ticket))
    return RaceResult(winner=best.ticket, why={one.ticket: _why(one, best, near) for one in finished})


def _why(lane: FinishedLane, best: FinishedLane, near: Sequence[FinishedLane]) -> str:
    lines = _count(lane.lines, "line")
    if lane is best:
        if len(near) == 1:
            return f"proven, and the smallest change ({lines})"
        return f"proven, of the smallest changes ({lines}), and a reader found least in it"
    if lane not in near:
        return f"proven, and larger ({lines}) than the change of ticket {best.ticket} ({_count(best.lines, 'line')})"
    if (lane.findings or 0) > (best.findings or 0):
        return f"proven, of about the same size ({lines}), and a reader found more in it than in ticket {best.ticket}"
    return f"proven, and as good as ticket {best.ticket}, which is smaller or came first"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
