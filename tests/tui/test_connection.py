"""The connection's state machine, tried with every order of steps."""

from __future__ import annotations

import itertools

import pytest

from legion.tui.link.connection import BACK_SHOWN, QUIET, SLOW_AFTER, Connection, Phase

STEPS = ("send", "answer", "lose", "hear", "forget", "wait")


def after(steps: tuple[str, ...]) -> tuple[Connection, float]:
    """One request at a time; a second passes with `wait`, none otherwise."""
    state, now = Connection(), 100.0
    for step in steps:
        if step == "wait":
            now += 1.0
        state = {
            "send": lambda one, at: one.sent(1, at),
            "answer": lambda one, at: one.answered(1, at),
            "lose": lambda one, at: one.lost(1, at, "gone"),
            "hear": lambda one, at: one.heard(at),
            "forget": lambda one, at: one.without(1),
            "wait": lambda one, at: one,
        }[step](state, now)
    return state, now


@pytest.mark.parametrize("length", range(6))
def test_whatever_happens_the_phase_follows_from_the_last_answer_and_the_last_loss(length: int):
    for steps in itertools.product(STEPS, repeat=length):
        state, now = after(steps)
        ends = [step for step in steps if step in ("answer", "lose")]
        phase = state.phase(now)
        if "answer" not in steps:
            assert phase is Phase.CONNECTING, steps
        elif ends[-1] == "lose":
            assert phase is Phase.GONE, steps
        else:
            assert phase in (Phase.LIVE, Phase.SLOW, Phase.BACK), steps
            assert (phase is Phase.SLOW) == waits_long(steps), steps
            assert phase is not Phase.BACK or "lose" in steps, steps


def waits_long(steps: tuple[str, ...]) -> bool:
    """Whether the last request is without an answer for a second."""
    settled = max((n for n, step in enumerate(steps) if step in ("answer", "lose", "forget")), default=-1)
    sent = max((n for n, step in enumerate(steps) if step == "send"), default=-1)
    return sent > settled and "wait" in steps[sent:]


def test_a_slow_daemon_shows_within_a_second():
    live = Connection().answered(1, 10.0)
    asked = live.sent(2, 20.0)
    assert asked.phase(20.0 + SLOW_AFTER - 0.01) is Phase.LIVE
    assert asked.phase(20.0 + SLOW_AFTER) is Phase.SLOW
    assert SLOW_AFTER < 1.0


def test_a_daemon_that_returned_is_shown_as_such_for_a_while():
    back = Connection().answered(1, 10.0).lost(None, 20.0, "gone").answered(2, 30.0)
    assert back.phase(30.0 + BACK_SHOWN - 0.01) is Phase.BACK
    assert back.phase(30.0 + BACK_SHOWN) is Phase.LIVE


def test_the_first_answer_is_no_return():
    assert Connection().lost(None, 1.0, "starts").answered(1, 2.0).phase(2.0) is Phase.LIVE


def test_the_time_of_the_loss_stays_and_tries_become_rarer():
    state, delays = Connection().answered(1, 5.0), []
    for number in range(6):
        state = state.lost(None, 10.0 + number, "gone")
        delays.append(state.retry_delay())
    assert state.lost_at == 10.0
    assert delays == sorted(delays)
    assert delays[0] <= 0.25
    assert delays[-1] == delays[-2] == 2.0


def test_a_quiet_daemon_is_asked_for_a_sign_of_life_and_a_busy_or_lost_one_is_not():
    live = Connection().answered(1, 10.0)
    assert not live.needs_sign_of_life(10.0 + QUIET - 0.1)
    assert live.needs_sign_of_life(10.0 + QUIET)
    assert not live.heard(12.0).needs_sign_of_life(10.0 + QUIET)
    assert not live.sent(2, 11.0).needs_sign_of_life(99.0)
    assert not live.lost(None, 11.0, "gone").needs_sign_of_life(99.0)
    assert not Connection().needs_sign_of_life(99.0)
