"""An id of a request that another operation used is refused in one sentence, and the request changes nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from legion.domain.agents.agent import ROOT
from legion.store.staff import mail
from legion.wire.agents import ClaimTicket, FireAgent
from legion.wire.dispatch import Dispatch, NewTicket
from legion.wire.errors import BadInput, NotFound, StateConflict
from legion.wire.mail import NewMessage, ReadMail
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


@pytest.mark.parametrize("id", ["epic-branch:1", "epic-wanted:1", "routine:1:1", "import/beads/1"])
def test_the_ids_of_legions_own_requests_are_refused(house: QuietSquad, project: Project, id: str):
    tickets = Dispatch(cwd=project.cwd, tickets=[NewTicket(title="Doors", command="true")], request=id)
    with pytest.raises(BadInput, match="Legion's own"):
        house.client.dispatch(tickets)


def test_a_repeated_message_is_no_part_of_a_quarrel(house: QuietSquad):
    ada, bob = house.office.hire("cora"), house.office.hire("dora")
    sent = list[NewMessage]()

    def quarrel() -> None:
        for number in range(50):
            for sender, other in ((ada, bob), (bob, ada)):
                letter = NewMessage(to=other.id, text="No.", request=f"{sender.name}-{number}")
                sender.legion.tell_agent(letter)
                sent.append(letter)

    with pytest.raises(StateConflict, match="only answered each other"):
        quarrel()
    last = sent[-1]
    assert (bob if last.to == ada.id else ada).legion.tell_agent(last).to == [last.to]


def test_a_repeated_dispatch_is_answered_though_it_would_be_refused_by_now(house: QuietSquad, project: Project):
    project.repository.git("branch", "begun")
    new = NewTicket(title="Doors", command="true", branch="begun")
    tickets = Dispatch(cwd=project.cwd, tickets=[new], request="once")
    ids = house.client.dispatch(tickets).ids
    project.repository.git("branch", "-D", "begun")
    assert house.client.dispatch(tickets).ids == ids
    with pytest.raises(NotFound, match="begun"):
        house.client.dispatch(replace(tickets, request="again"))


def test_only_what_the_person_is_shown_counts_as_read(house: QuietSquad):
    house.client.mail(ReadMail())
    emma = house.office.hire("emma")
    with house.office.context.store.write() as tx:
        for number in range(201):
            mail.send(tx, sender=emma.id, recipient=ROOT, text=f"letter {number}")
    assert len(house.client.mail(ReadMail(all=True)).messages) == 200
    unread = house.client.mail(ReadMail()).messages
    assert [one.text for one in unread] == ["letter 0"]
