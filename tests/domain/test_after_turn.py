"""What follows a turn of a standing agent, for every way in which one can end."""

from __future__ import annotations

from itertools import product

import pytest

from legion.domain.runs import MOST_GENERATIONS, Outcome
from legion.domain.scheduling.after_turn import AfterTurn, EndTurn, ResumeAt, ResumeTurn, RetryTurn, after_turn

GENERATIONS = (1, MOST_GENERATIONS - 1, MOST_GENERATIONS)
ENDED = EndTurn(report=True, completed=False, ask_budget=False)

STARTED: dict[Outcome, AfterTurn] = {
    Outcome.FINISHED: EndTurn(report=True, completed=True, ask_budget=False),
    Outcome.INTERRUPTED: EndTurn(report=False, completed=False, ask_budget=False),
    Outcome.OUT_OF_BUDGET: EndTurn(report=True, completed=False, ask_budget=True),
    Outcome.LOST: ResumeTurn(ResumeAt.NOW),
    Outcome.LIMITED: ResumeTurn(ResumeAt.LIMIT_RESET),
    Outcome.REFUSED: ResumeTurn(ResumeAt.PROVIDER_FIXED),
    Outcome.FAILED: ENDED,
    Outcome.TIMED_OUT: ENDED,
    Outcome.STOPPED: ENDED,
    Outcome.NOT_STARTED: ENDED,
    Outcome.GAVE_UP: ENDED,
}
"""Where the prompt reached the model, in the first generation."""
SAME_WITHOUT_A_START = {Outcome.FINISHED, Outcome.INTERRUPTED, Outcome.LIMITED, Outcome.REFUSED}


def test_the_table_knows_every_outcome():
    assert set(STARTED) == set(Outcome)


@pytest.mark.parametrize("outcome", Outcome)
def test_every_end_of_a_turn_leads_to_one_next_step(outcome: Outcome):
    for started, generation, failed in product((True, False), GENERATIONS, range(1, 12)):
        found = after_turn(outcome, started=started, generation=generation, failed_starts=failed)
        lost_for_good = outcome is Outcome.LOST and generation == MOST_GENERATIONS
        resumes = outcome is Outcome.LOST and not lost_for_good
        if started or resumes or outcome in SAME_WITHOUT_A_START:
            assert found == (ENDED if lost_for_good else STARTED[outcome])
        else:
            assert isinstance(found, RetryTurn)


def test_each_failed_start_pauses_twice_as_long_and_the_third_one_is_reported_once():
    found = [after_turn(Outcome.FAILED, started=False, generation=1, failed_starts=n) for n in range(1, 11)]
    assert found == [
        RetryTurn(pause=pause, report=n == 3)
        for n, pause in enumerate((5, 10, 20, 40, 80, 160, 320, 600, 600, 600), start=1)
    ]
