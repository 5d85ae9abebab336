"""Every step that can be taken names the rule by which it is."""

from __future__ import annotations

import pytest

from legion.domain import rules
from legion.domain.rules import Rule, rule_of
from legion.domain.tickets import (
    MOVES,
    Approve,
    AskReview,
    Cause,
    Change,
    Confirm,
    Fail,
    Ground,
    Inspect,
    Land,
    Park,
    ParkReason,
    Planted,
    Propose,
    Prove,
    Resume,
    Retry,
    Rewind,
    Start,
    Step,
    Stop,
    Submit,
    TryAgain,
    Unpark,
)

STEPS: list[Step] = [
    *(Submit(), Start("c"), Planted(), Inspect(), Propose(Change(base="b", commit="c")), Prove(), AskReview()),
    *(Approve(), Land("c"), Confirm("c"), Resume("why"), Unpark(), Fail("why"), Stop(), Retry()),
    Rewind(Ground(base="b", tree="t"), "why"),
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
