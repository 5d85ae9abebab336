"""Checks that nothing was lost: compares the daemon's events with the hub itself."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from legion.demo.clone import contains, trees_of
from legion.wire.ticket_pages import TicketPage
from legion.wire.tickets import EventLine

_GREEN = "green"


@dataclass(frozen=True, kw_only=True)
class LandedFacts:
    hub: Path
    target: str
    """The target's commit at the end."""
    events: Sequence[EventLine]
    pages: Sequence[TicketPage]


def losses(evidence: LandedFacts) -> list[str]:
    """A sentence for every loss; empty where nothing was lost."""
    return [*_unended(evidence), *_untested(evidence), *_not_landed(evidence)]


def _unended(evidence: LandedFacts) -> Iterator[str]:
    for page in evidence.pages:
        if page.ticket.state not in ("done", "failed"):
            yield f"Ticket {page.ticket.id} has not ended: {page.ticket.reason or page.ticket.state}."


def _untested(evidence: LandedFacts) -> Iterator[str]:
    """Moves of the target to a tree whose checks were not green."""
    moves = [str(event.data["commit"]) for event in evidence.events if event.kind == "target.moved"]
    receipts = [event.data for event in evidence.events if event.kind == "check.receipt" and event.ticket is None]
    trees = trees_of(evidence.hub, {*moves, *(str(receipt["commit"]) for receipt in receipts)})
    green: dict[str, set[object]] = defaultdict(set)
    for receipt in receipts:
        if receipt["verdict"] == _GREEN:
            green[trees[str(receipt["commit"])]].add(receipt["name"])
    wanted = {receipt["name"] for receipt in receipts}
    for commit in moves:
        if missing := sorted(str(name) for name in wanted - green[trees[commit]]):
            yield f"The target moved to {commit[:8]} without a green {', '.join(missing)}."
    if moves and moves[-1] != evidence.target:
        yield f"The target is at {evidence.target[:8]}, and the last landing left it at {moves[-1][:8]}."


def _not_landed(evidence: LandedFacts) -> Iterator[str]:
    landings = Counter(event.ticket for event in evidence.events if event.kind == "landing.landed")
    for page in evidence.pages:
        number = page.ticket.id
        if landings[number] > 1:
            yield f"Ticket {number} landed {landings[number]} times."
        if page.ticket.state != "done" or page.ticket.checkpoint:
            continue
        if page.landed is None or not contains(evidence.hub, evidence.target, page.landed):
            yield f"Ticket {number} is done, but its change is not in the target."
