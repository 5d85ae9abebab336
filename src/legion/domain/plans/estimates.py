"""Estimates cost and time of a draft from the landed tickets of its project; tells whether a ticket was too large."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from legion.domain.plans.draft import PlanDraft
from legion.domain.runs import Outcome
from legion.domain.tickets import board
from legion.domain.tickets.ticket import Cause

LEAST = 3
"""Fewer landed tickets say nothing."""
LEAST_SHARE = 0.05
"""Dollars; with less a ticket may stop at its first answer."""
ROOM = 3
"""A ticket may take so many times what the usual one takes."""


@dataclass(frozen=True, kw_only=True)
class LandedTicket:
    """What one landed ticket took."""

    usd: float
    seconds: float
    """From its first start to its landing."""


@dataclass(frozen=True, kw_only=True)
class PastEstimate:
    """What was estimated for a ticket when it was approved, and what it took."""

    usd: float
    seconds: float
    took: LandedTicket


@dataclass(frozen=True, kw_only=True)
class PlanEstimate:
    """None: unknown, because too few tickets have landed."""

    usd: float | None = None
    seconds: float | None = None
    usd_each: float | None = None
    seconds_each: float | None = None
    usd_error: float | None = None
    """The median error of earlier estimates, as a share: 0.4 is 40 %."""
    seconds_error: float | None = None


def longest_chain(draft: PlanDraft) -> tuple[str, ...]:
    """Keys, first ticket first. Empty for a draft with a circle."""
    keys = draft.keys
    if _has_circle(draft):
        return ()
    cost = {n: 0.5 if one.checkpoint else 1.0 for n, one in enumerate(draft.tickets)}
    return tuple(keys[position] for position in board.critical_path(draft.edges, cost))


def estimate(
    draft: PlanDraft, landed: Sequence[LandedTicket], past: Sequence[PastEstimate], *, parallel: int
) -> PlanEstimate:
    """For the tickets that have an agent. The time is that of the longest chain, or of all tickets over `parallel`."""
    work = [one for one in draft.tickets if not one.checkpoint]
    if len(landed) < LEAST:
        return PlanEstimate()
    usd, seconds = median(one.usd for one in landed), median(one.seconds for one in landed)
    chain = [key for key in longest_chain(draft) if not _checkpoints(draft)[key]]
    rows = max(len(chain), -(-len(work) // max(1, parallel)))
    return PlanEstimate(
        usd=usd * len(work),
        seconds=seconds * rows,
        usd_each=usd,
        seconds_each=seconds,
        usd_error=_error([(one.usd, one.took.usd) for one in past]),
        seconds_error=_error([(one.seconds, one.took.seconds) for one in past]),
    )


def budget_share(money: float, tickets: int, each: float | None) -> float:
    """What each of the tickets gets of a limited budget: room for a ticket that takes more than usual, and no more, so
    that something is left for planners and fixes. `each`: what one usually takes; None: unknown."""
    most = money / tickets / 2 if each is None else min(money / tickets, max(ROOM * each, LEAST_SHARE))
    return math.floor(100 * most) / 100


def _checkpoints(draft: PlanDraft) -> Mapping[str, bool]:
    return {one.key: one.checkpoint for one in draft.tickets}


def _error(pairs: Sequence[tuple[float, float]]) -> float | None:
    shares = [abs(took - said) / said for said, took in pairs if said > 0]
    return median(shares) if shares else None


def _has_circle(draft: PlanDraft) -> bool:
    """Whether some tickets never become ready."""
    left = {position: set(before) for position, before in draft.edges.items()}
    while ready := [position for position, before in left.items() if not before]:
        for position in ready:
            del left[position]
        for before in left.values():
            before.difference_update(ready)
    return bool(left)


_TOO_LARGE = re.compile(
    r"(?i)\b(?:too|very) (?:large|big|long|broad)\b|\btoo (?:much|many)\b"
    r"|\bcontext (?:window|length|limit)\b|\bsplit (?:it|this|the ticket|up)\b|\bshould be split\b"
)


def cause_of(outcome: Outcome, detail: str) -> Cause:
    """The cause of a run that did not finish: its time was up, its context was full, or its agent said so."""
    if outcome is Outcome.TIMED_OUT:
        return Cause.SIZE
    told = outcome in (Outcome.GAVE_UP, Outcome.FAILED) and _TOO_LARGE.search(detail)
    return Cause.SIZE if told else Cause.ATTEMPT
