"""An id of a request that another operation used is refused in one sentence, and the request changes nothing."""

from __future__ import annotations

import pytest

from legion.wire.agents import ClaimTicket, FireAgent
from legion.wire.dispatch import Dispatch, NewTicket
from legion.wire.errors import StateConflict
from legion.wire.mail import NewMessage
from legion.wire.notes import AddNote
from legion.wire.plans import NewPlan
from tests.support.legion import Project
from tests.support.office import QuietSquad

_REFUSED = "belongs to another operation"


def test_an_id_belongs_to_one_operation_of_an_agent(house: QuietSquad):
    ada = house.office.hire("ada")
    sent = ada.legion.tell_agent(NewMessage(to="root", text="Hello.", request="once"))
    assert ada.legion.tell_agent(NewMessage(to="root", text="Hello.", request="once")) == sent
    with pytest.raises(StateConflict, match=_REFUSED):
        ada.legion.claim(ClaimTicket(request="once"))
    with pytest.raises(StateConflict, match=_REFUSED):
        ada.legion.fire(FireAgent(id="ada", request="once"))


def test_an_id_belongs_to_one_operation_of_a_project(house: QuietSquad, project: Project):
    person, cwd = house.client, project.cwd
    plan = NewPlan(cwd=cwd, goal="Doors.", request="once")
    tickets = Dispatch(cwd=cwd, tickets=[NewTicket(title="Doors", command="true")], request="other")
    made, ids = person.plan(plan).plan.id, person.dispatch(tickets).ids
    tickets.request, plan.request = plan.request, tickets.request
    with pytest.raises(StateConflict, match=_REFUSED):
        person.dispatch(tickets)
    with pytest.raises(StateConflict, match=_REFUSED):
        person.plan(plan)
    assert [one.id for one in person.plans(cwd).plans] == [made]
    assert [one.id for one in person.status(cwd).tickets] == ids
    # A note is remembered by its caller: no operation of the project has used that id there.
    assert person.add_note(AddNote(cwd=cwd, text="Doors on Sunday.", request="once")).notes
