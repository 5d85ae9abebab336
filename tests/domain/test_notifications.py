"""What is worth telling a person, of every move that there is."""

from __future__ import annotations

from itertools import product

import pytest

from legion.domain.events import Event, EventKind
from legion.domain.notifications import NotificationKind, occasions
from legion.domain.plans.plan import PlanState
from legion.domain.tickets.ticket import ENDED, ParkReason, State


def moved(to: State) -> Event:
    return Event(n=1, at=0.0, kind=EventKind.TICKET_MOVED, project=1, ticket=1, data={"to": to.value})


@pytest.mark.parametrize(
    ("to", "reason", "live"), list(product(State, (None, *ParkReason), (0, 1))), ids=lambda value: str(value)
)
def test_every_move_is_told_as_what_it_is(to: State, reason: ParkReason | None, live: int):
    found = occasions(moved(to), parked=reason.value if reason else None, live=live)
    # The others come with a question, which is told itself.
    asks = reason is ParkReason.PROVIDER
    assert (NotificationKind.DONE in found) is (to is State.DONE)
    assert (NotificationKind.FAILED in found) is (to is State.FAILED)
    assert (NotificationKind.QUESTION in found) is (to is State.PARKED and asks)
    assert (NotificationKind.ALL_DONE in found) is (to in ENDED and live == 0)


@pytest.mark.parametrize("kind", list(EventKind))
def test_other_events_are_no_occasion_but_a_question(kind: EventKind):
    event = Event(n=1, at=0.0, kind=kind, project=1, ticket=1)
    wanted = (NotificationKind.QUESTION,) if kind is EventKind.QUESTION_ASKED else ()
    assert occasions(event, parked=None, live=0) == wanted


@pytest.mark.parametrize(("origin", "to"), list(product(PlanState, PlanState)))
def test_a_plan_is_news_when_its_planner_is_done(origin: PlanState, to: PlanState):
    data = {"plan": 3, "from": origin.value, "to": to.value}
    event = Event(n=1, at=0.0, kind=EventKind.PLAN_MOVED, project=1, data=data)
    waits = (
        to in (PlanState.READY, PlanState.WRITTEN, PlanState.FAULTY, PlanState.FAILED) and origin is PlanState.PLANNING
    )
    assert occasions(event, parked=None, live=1) == ((NotificationKind.QUESTION,) if waits else ())


def test_what_a_person_ended_themselves_is_no_news_to_them():
    ended = Event(
        n=1, at=0.0, kind=EventKind.TICKET_MOVED, project=1, ticket=1, data={"to": "failed", "rule": "person"}
    )
    assert occasions(ended, parked=None, live=1) == ()
