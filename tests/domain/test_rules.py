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


def test_every_kind_of_event_is_a_fact_or_names_its_rule():
    by_itself = {kind for kind in EventKind if rules.decided_by(Event(n=1, at=0.0, kind=kind))}
    assert not by_itself & rules.FACTS
    assert not by_itself & rules.NAMED
    assert by_itself | rules.FACTS | rules.NAMED == set(EventKind)


@pytest.mark.parametrize(
    ("by", "rule"), [("person", Rule.PERSON), ("silence", Rule.SILENCE_ANSWERS), ("end", Rule.MOOT_IS_WITHDRAWN)]
)
def test_who_settled_a_question_says_by_which_rule(by: str, rule: Rule):
    assert rules.decided_by(Event(n=1, at=0.0, kind=EventKind.QUESTION_SETTLED, data={"by": by})) == rule.value
