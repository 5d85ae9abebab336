"""What is worth telling a person, of every move that there is."""

from __future__ import annotations

from itertools import product

import pytest

from legion.domain.events import Event, Kind
from legion.domain.occasions import Occasion, occasions
from legion.domain.tickets import ENDED, ParkReason, State


def moved(to: State) -> Event:
    return Event(n=1, at=0.0, kind=Kind.TICKET_MOVED, project=1, ticket=1, data={"to": to.value})


@pytest.mark.parametrize(
    ("to", "reason", "live"), list(product(State, (None, *ParkReason), (0, 1))), ids=lambda value: str(value)
)
def test_every_move_is_told_as_what_it_is(to: State, reason: ParkReason | None, live: int):
    found = occasions(moved(to), parked=reason.value if reason else None, live=live)
    # The others come with a question, which is told itself.
    asks = reason is ParkReason.PROVIDER
    assert (Occasion.DONE in found) is (to is State.DONE)
    assert (Occasion.FAILED in found) is (to is State.FAILED)
    assert (Occasion.QUESTION in found) is (to is State.PARKED and asks)
    assert (Occasion.ALL_DONE in found) is (to in ENDED and live == 0)


@pytest.mark.parametrize("kind", list(Kind))
def test_other_events_are_no_occasion_but_a_question(kind: Kind):
    event = Event(n=1, at=0.0, kind=kind, project=1, ticket=1)
    wanted = (Occasion.QUESTION,) if kind is Kind.QUESTION_ASKED else ()
    assert occasions(event, parked=None, live=0) == wanted


def test_what_a_person_ended_themselves_is_no_news_to_them():
    ended = Event(n=1, at=0.0, kind=Kind.TICKET_MOVED, project=1, ticket=1, data={"to": "failed", "rule": "person"})
    assert occasions(ended, parked=None, live=1) == ()
