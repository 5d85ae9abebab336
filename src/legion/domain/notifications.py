"""Notifications: which events a person is notified of (a ticket is done, failed or asks; all work has ended)."""

from __future__ import annotations

from enum import Enum

from legion.domain.events import Event, EventKind
from legion.domain.plans.plan import PlanState
from legion.domain.rules import Rule
from legion.domain.tickets.ticket import ENDED, ParkReason, State


class NotificationKind(Enum):
    DONE = "done"
    """A ticket landed, or a checkpoint passed."""
    FAILED = "failed"
    QUESTION = "question"
    """Only a person can settle it: an agent asks, a ticket's own budget is spent, a provider refuses."""
    ALL_DONE = "all_done"
    """Every ticket of the project has ended."""


_WITHOUT_A_QUESTION = ParkReason.PROVIDER.value
"""The only reason to wait for a person that comes without a question: the move itself is the notice."""
_ENDS = frozenset(state.value for state in ENDED)
_TOLD = _ENDS | {State.PARKED.value}


_PLANS = frozenset(one.value for one in (PlanState.READY, PlanState.WRITTEN, PlanState.FAULTY, PlanState.FAILED))
"""States in which a plan waits for the person. A question of its planner is a notice of its own."""


def may_be_one(event: Event) -> bool:
    """A cheap filter: most events cause no notification."""
    match event.kind:
        case EventKind.QUESTION_ASKED:
            return True
        case EventKind.MACHINE_STATE:
            return bool(event.data.get("reason"))
        case EventKind.PLAN_MOVED:
            return event.data.get("to") in _PLANS and event.data.get("from") == PlanState.PLANNING.value
        case kind:
            return kind is EventKind.TICKET_MOVED and event.data.get("to") in _TOLD


def occasions(event: Event, *, parked: str | None, live: int) -> tuple[NotificationKind, ...]:
    """The kinds of notification an event causes. `parked`: why its ticket waits now; `live`: how many tickets of the
    project have not ended.
    """
    if event.kind is EventKind.QUESTION_ASKED:
        return (NotificationKind.QUESTION,)
    if not may_be_one(event):
        return ()
    if event.kind in (EventKind.PLAN_MOVED, EventKind.MACHINE_STATE):
        return (NotificationKind.QUESTION,)
    found = []
    goal = event.data.get("to")
    if goal == State.DONE.value:
        found.append(NotificationKind.DONE)
    elif goal == State.FAILED.value and event.data.get("rule") != Rule.PERSON.value:
        found.append(NotificationKind.FAILED)
    elif goal == State.PARKED.value and parked == _WITHOUT_A_QUESTION:
        found.append(NotificationKind.QUESTION)
    if goal in _ENDS and live == 0:
        found.append(NotificationKind.ALL_DONE)
    return tuple(found)
