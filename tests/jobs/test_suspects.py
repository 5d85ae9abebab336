"""Who waits for the repetition of a red test, and for how long others go first."""

from __future__ import annotations

from dataclasses import replace

from legion.domain.tickets.spec import TicketSpec
from legion.domain.tickets.ticket import State, Ticket
from legion.jobs.checks import execution
from legion.jobs.landing.job import Suspect, Suspects


def ticket(number: int) -> Ticket:
    return Ticket(id=number, project=1, spec=TicketSpec(title="t", text=""), state=State.LANDING)


def suspect(whose: Ticket) -> Suspect:
    return Suspect(
        ticket=whose, against=execution.CheckedCommit(commit="c", receipts=(), wanted=()), alone=False, room=32
    )


def test_others_go_first_three_times_and_no_more():
    suspects = Suspects()
    suspects.add(suspect(ticket(1)))
    assert [suspects.next(others_wait=True) is None for _ in range(4)] == [True, True, True, False]
    assert suspects.next(others_wait=False) is None


def test_where_nobody_else_waits_they_come_in_order():
    suspects = Suspects()
    both = [suspect(ticket(1)), suspect(ticket(2))]
    for one in both:
        suspects.add(one)
    assert suspects.ids == {1, 2}
    assert [suspects.next(others_wait=False) for _ in range(3)] == [*both, None]
    assert suspects.ids == frozenset()


def test_a_suspect_is_in_no_batch_until_a_person_has_brought_it_back():
    suspects = Suspects()
    one, other = ticket(1), ticket(2)
    suspects.add(suspect(one))
    assert suspects.without([one, other]) == (other,)
    again = replace(one, version=one.version + 1)
    assert suspects.without([again, other]) == (again, other)
