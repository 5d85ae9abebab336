"""Every step that can be taken names the rule by which it is."""

from __future__ import annotations

import pytest

from legion.domain import rules
from legion.domain.events import Event, EventKind
from legion.domain.rules import Rule, rule_of
from legion.domain.tickets.spec import StartPoint
from legion.domain.tickets.ticket import (
    MOVES,
    AlreadyThere,
    Approve,
    AskReview,
    Cause,
    Change,
    Confirm,
    Fail,
    Inspect,
    Land,
    Park,
    ParkReason,
    Propose,
    Prove,
    Recheck,
    Resume,
    Retry,
    Rewind,
    Start,
    StartPointUsed,
    Step,
    Stop,
    Submit,
    TryAgain,
    Unpark,
)

STEPS: list[Step] = [
    *(Submit(), Start("c"), StartPointUsed(), Inspect(), Propose(Change(base="b", commit="c")), Prove(), AskReview()),
    *(AlreadyThere(Change(base="b", commit="c"), "why"), Recheck()),
    *(Approve(), Land("c"), Confirm("c"), Resume("why"), Unpark(), Fail("why"), Stop(), Retry()),
    Rewind(StartPoint(base="b", tree="t"), "why"),
    *(TryAgain("why", "feedback", cause=cause) for cause in Cause),
    *(Park(reason, "why") for reason in ParkReason),
]


def test_these_are_all_steps_that_there_are():
    assert {type(step) for step in STEPS} == {step for _, step in MOVES} | {Unpark}


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_every_step_has_a_rule_of_its_own(step: Step):
    assert rule_of(step) is not Rule.UNNAMED


def test_every_rule_is_said_in_words():
    assert set(rules.WORDS) == set(Rule)
    assert len(set(rules.WORDS.values())) == len(Rule)


def test_only_what_a_person_asks_for_is_a_persons():
    theirs = {type(step) for step in STEPS if rule_of(step) is Rule.PERSON}
    assert theirs == {Submit, Stop, Retry, Rewind, Park}


FACTS = frozenset(
    {
        *(
            EventKind.PROJECT_ADDED,
            EventKind.PROJECT_REMOVED,
            EventKind.PROJECT_TRUSTED,
            EventKind.PROJECT_PAUSED,
            EventKind.PROJECT_RESUMED,
            EventKind.PROJECT_NUMBERS,
            EventKind.MACHINE_JOINED,
            EventKind.MACHINE_STATE,
        ),
        *(
            EventKind.TICKET_DROPPED,
            EventKind.TICKET_EDITED,
            EventKind.TICKET_REPORTED,
            EventKind.TICKET_ADVISED,
            EventKind.TICKET_TRIED,
            EventKind.TICKET_PROGRAM_CHOSEN,
            EventKind.REWOUND,
            EventKind.RACE_STARTED,
            EventKind.RACE_DECIDED,
            EventKind.TICKET_ADOPTED,
            EventKind.TICKET_FORKED,
            EventKind.RUN_STARTED,
            EventKind.RUN_ENDED,
            EventKind.QUEUE_TEST,
        ),
        *(
            EventKind.AGENT_HIRED,
            EventKind.AGENT_FIRED,
            EventKind.AGENT_INTERRUPTED,
            EventKind.AGENT_DELEGATES,
            EventKind.PLAN_APPROVED,
            EventKind.PLAN_REJECTED,
            EventKind.PLAN_CREATED,
            EventKind.PLAN_MOVED,
            EventKind.NOTE_ADDED,
            EventKind.NOTE_CLOSED,
            EventKind.LESSON_PROPOSED,
            EventKind.LESSON_ACCEPTED,
            EventKind.ROUTINE_ADDED,
            EventKind.ROUTINE_REMOVED,
            EventKind.ROUTINE_RAN,
        ),
        *(
            EventKind.MAIL_SENT,
            EventKind.MAIL_DELIVERED,
            EventKind.RECEIPT,
            EventKind.REVIEW_GIVEN,
            EventKind.COLLECTED,
            EventKind.REFUSED,
            EventKind.DEVICE_ADDED,
            EventKind.DEVICE_REVOKED,
            EventKind.REBUILT,
        ),
    }
)
"""Kinds of events that a caller asked for or that only record a fact: no rule decided them."""
NAMED = frozenset(
    {
        *(
            EventKind.TICKET_MOVED,
            EventKind.LANDED,
            EventKind.SENT_BACK,
            EventKind.AT_GATE,
            EventKind.LEFT_BEHIND,
            EventKind.BROUGHT_BACK,
            EventKind.CONFLICT_PREDICTED,
        ),
        *(
            EventKind.CONFLICT_GONE,
            EventKind.BATCH,
            EventKind.BATCH_SIZE,
            EventKind.FLAKY,
            EventKind.THROTTLE_CHANGED,
            EventKind.WATCHDOG_STEP,
            EventKind.WARNING,
        ),
    }
)
"""Kinds whose events carry the name of their rule."""


def test_every_kind_of_event_is_a_fact_or_names_its_rule():
    by_itself = {kind for kind in EventKind if rules.decided_by(Event(n=1, at=0.0, kind=kind))}
    assert not by_itself & FACTS
    assert not by_itself & NAMED
    assert by_itself | FACTS | NAMED == set(EventKind)


@pytest.mark.parametrize(
    ("by", "rule"), [("person", Rule.PERSON), ("silence", Rule.SILENCE_ANSWERS), ("end", Rule.MOOT_IS_WITHDRAWN)]
)
def test_who_settled_a_question_says_by_which_rule(by: str, rule: Rule):
    assert rules.decided_by(Event(n=1, at=0.0, kind=EventKind.QUESTION_SETTLED, data={"by": by})) == rule.value
