"""When parked work wakes: at the reset, one after the other; without a reset after a pause that grows and ends."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from legion.domain.runs import Outcome, Run
from legion.domain.scheduling.throttle import AFTER_RESET, APART, FIRST_PAUSE, LONGEST_PAUSE, apart, wakes_at

NOW = 1000.0


def runs(*outcomes: Outcome | None) -> list[Run]:
    return [
        Run(id=n, project=1, ticket=1, attempt=1, generation=1, started_at=0.0, outcome=outcome)
        for n, outcome in enumerate(outcomes)
    ]


def test_it_wakes_a_moment_after_the_reset():
    assert wakes_at(NOW, NOW + 3600, runs(None)) == NOW + 3600 + AFTER_RESET


def test_many_wake_one_after_the_other():
    moments: list[float] = []
    for _ in range(30):
        moments.append(apart(NOW, moments))
    assert {round(late - early, 6) for early, late in itertools.pairwise(moments)} == {APART}


@given(st.floats(0, 1e6), st.lists(st.floats(0, 1e6), max_size=30))
def test_whoever_wakes_keeps_its_distance_and_does_not_wake_early(moment, others):
    found = apart(moment, others)
    assert moment <= found <= moment + 2 * APART * len(others)
    assert all(abs(found - other) >= APART - 1e-6 for other in others)


def test_a_reset_that_has_passed_tells_nothing():
    assert wakes_at(NOW, NOW - 5, runs(None)) == NOW + FIRST_PAUSE


def test_without_a_reset_each_limited_run_in_a_row_doubles_the_pause():
    limited = Outcome.LIMITED
    pauses = [wakes_at(NOW, None, runs(*[limited] * before, None)) - NOW for before in range(8)]
    assert pauses[:3] == [FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE]
    assert pauses[-1] == LONGEST_PAUSE
    assert wakes_at(NOW, None, runs(limited, limited, Outcome.FINISHED, None)) == NOW + FIRST_PAUSE


@given(st.floats(0, 1e9), st.none() | st.floats(0, 2e9), st.lists(st.sampled_from(Outcome), max_size=12))
def test_nothing_wakes_in_the_past_or_never(now, reset, outcomes):
    moment = wakes_at(now, reset, runs(*outcomes, None))
    assert now < moment <= max(now, reset or 0) + max(LONGEST_PAUSE, AFTER_RESET)
