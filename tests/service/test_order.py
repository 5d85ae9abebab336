"""The order in which tickets start, by the scheduler's rules on the real store."""

from __future__ import annotations

from legion.domain.scheduling.decide import JobKind, decide
from legion.domain.scheduling.job_places import StartJob
from legion.store import snapshot
from tests.support.legion import Project
from tests.support.office import QuietSquad


def next_start(house: QuietSquad, project: Project) -> int:
    """The ticket that would start in the one slot, which then leaves the queue."""
    context = house.office.context
    with context.store.read() as tx:
        facts = snapshot.load(tx, 1, {})
    starts = [one for one in decide(facts, context.clock()).commands if isinstance(one, StartJob)]
    (ticket,) = [one.subject for one in starts if one.kind is JobKind.RUN]
    project.stop(ticket)
    return ticket


def test_higher_priority_starts_first_and_then_the_oldest(house: QuietSquad, project: Project):
    low, middle, high, later = [project.dispatch(f"priority {n}", "true", priority=n) for n in (-1, 0, 5, 0)]
    assert [next_start(house, project) for _ in range(4)] == [high, middle, later, low]
