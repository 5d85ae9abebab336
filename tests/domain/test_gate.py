"""Which changes wait for the person: every combination of the ticket's, the epic's and the project's gate."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from legion.domain.landing.queue import gate_key, gate_of
from legion.domain.tickets.spec import LandingGate, TicketSpec
from legion.domain.tickets.ticket import Change, Ticket

GATES = (None, *LandingGate)


def ticket(**spec: object) -> Ticket:
    change = Change(base="b", commit="c")
    return Ticket(id=7, project=1, spec=TicketSpec(title="x", text="", **spec), change=change)  # type: ignore[arg-type]


@pytest.mark.parametrize("gate", GATES, ids=str)
def test_the_nearest_gate_counts(gate: LandingGate | None):
    for epic, project in product(GATES, GATES[1:]):
        assert project is not None
        assert gate_of(ticket(gate=gate), epic=epic, project=project) is (gate or epic or project)


def test_an_undo_and_a_checkpoint_never_wait():
    for one in (ticket(undoes=3), ticket(checkpoint=True)):
        assert gate_of(one, epic=None, project=LandingGate.PERSON) is LandingGate.AUTO


def test_an_answer_counts_for_one_change_only_and_ends_with_a_retry():
    one = ticket()
    keys = {
        gate_key(one),
        gate_key(one, again=True),
        gate_key(replace(one, spared=1)),
        gate_key(replace(one, change=Change(base="b", commit="d"))),
    }
    assert len(keys) == 4
