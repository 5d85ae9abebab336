"""What follows an attempt: a conflict costs none, and two that change nothing end in a question."""

from __future__ import annotations

import pytest

from legion.domain.tickets import ladder
from legion.domain.tickets.ladder import (
    MOST_FORGIVEN,
    Rung,
    has_attempts,
    next_try_after_conflict,
    next_try_after_no_change,
)
from legion.domain.tickets.spec import StartPoint, TicketSpec
from legion.domain.tickets.ticket import Cause, Change, Fail, Propose, Prove, Start, State, Ticket, TryAgain, move

GROUND = StartPoint(base="b", tree="t")
TWO_RUNGS = [Rung(model="m", rule=""), Rung(model="m", rule="")]


def landing(ticket: Ticket) -> Ticket:
    """One more attempt, which reaches the merge queue."""
    for step in (Start("b"), Propose(Change(base="b", commit="c")), Prove()):
        ticket = move(ticket, step, 0.0)
    return ticket


def queued(most: int) -> Ticket:
    return Ticket(id=1, project=1, spec=TicketSpec(title="", text="", max_attempts=most), state=State.QUEUED)


@pytest.mark.parametrize("most", [2, 3])
def test_conflicts_cost_no_attempt_and_end_all_the_same(most: int):
    ticket, conflicts = queued(most), 0
    while True:
        ticket = landing(ticket)
        step = next_try_after_conflict(ticket, "it conflicts", "f", GROUND)
        if isinstance(step, Fail):
            break
        conflicts += 1
        if conflicts <= MOST_FORGIVEN:
            assert (ladder.place(ticket), ladder.begins(ticket)) == (0, False), "no step of escalation either"
            assert not ladder.used_up(ticket, TWO_RUNGS)
        ticket = move(ticket, step, 0.0)
        assert has_attempts(ticket) or conflicts > MOST_FORGIVEN
    assert step.cause is Cause.CONFLICT
    assert conflicts == MOST_FORGIVEN + most - 1


def test_a_ticket_with_a_single_attempt_ends_with_its_first_conflict():
    step = next_try_after_conflict(landing(queued(1)), "it conflicts", "f", GROUND)
    assert isinstance(step, Fail)
    assert step.cause is Cause.CONFLICT


def test_other_failures_count_as_before_between_conflicts():
    ticket = landing(queued(2))
    ticket = landing(move(ticket, next_try_after_conflict(ticket, "it conflicts", "f", GROUND), 0.0))
    assert ticket.used == 1
    ticket = landing(move(ticket, TryAgain("red", "f"), 0.0))
    assert not has_attempts(ticket)


@pytest.mark.parametrize("most", [1, 2, 5])
def test_two_attempts_that_change_nothing_are_enough(most: int):
    ticket = move(queued(most), Start("b"), 0.0)
    first = next_try_after_no_change(ticket, "it changed nothing", "f", again=False)
    assert isinstance(first, TryAgain) is (most > 1)
    second = next_try_after_no_change(ticket, "it changed nothing", "f", again=True)
    assert isinstance(second, Fail)
    assert (second.asks, second.why) == (True, "it changed nothing")
