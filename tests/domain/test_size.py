"""Which ends of a run mean that the ticket is too large."""

from __future__ import annotations

import pytest

from legion.domain.runs import Outcome
from legion.domain.tickets.ticket import Cause
from legion.jobs.supervise.outcome import cause_of


@pytest.mark.parametrize(
    "detail",
    [
        "this ticket is too large for one change",
        "there are too many files to convert",
        "the context window is full",
        "Prompt is too long",
        "it should be split",
        "please split this",
    ],
)
def test_an_agent_that_says_so_is_believed_where_it_gave_up_or_its_program_failed(detail: str):
    assert cause_of(Outcome.GAVE_UP, detail) is Cause.SIZE
    assert cause_of(Outcome.FAILED, detail) is Cause.SIZE
    for outcome in set(Outcome) - {Outcome.GAVE_UP, Outcome.FAILED, Outcome.TIMED_OUT}:
        assert cause_of(outcome, detail) is Cause.ATTEMPT


@pytest.mark.parametrize("detail", ["", "the tests do not pass", "I cannot split hairs", "exit code 137"])
def test_other_reasons_are_the_attempts_own_but_for_the_time_that_is_up(detail: str):
    assert cause_of(Outcome.GAVE_UP, detail) is Cause.ATTEMPT
    assert cause_of(Outcome.FAILED, detail) is Cause.ATTEMPT
    assert cause_of(Outcome.TIMED_OUT, detail) is Cause.SIZE
