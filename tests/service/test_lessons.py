"""Lessons over the real service: accepted by the person or a leader, carried by briefings, and measured."""

from __future__ import annotations

import pytest

from legion.jobs.agent import spec
from legion.store.board import notes, tickets
from legion.wire.errors import BadInput, NotAllowed, NotFound
from legion.wire.notes import CloseNote
from tests.support.legion import Project
from tests.support.office import QuietSquad


def propose(house: QuietSquad, project: Project, text: str = "Mind the till.") -> int:
    ticket = project.dispatch("Teach", "true")
    with house.office.context.store.write() as tx:
        mine = tickets.get(tx, ticket).project
        return notes.propose(tx, mine, text, files=["till/**"], labels=[], ticket=ticket).id


def test_a_proposed_lesson_is_listed_and_counts_once_it_is_accepted(house: QuietSquad, project: Project):
    client, cwd = house.client, project.cwd
    number = propose(house, project)
    (shown,) = client.lessons(cwd).lessons
    assert (shown.id, shown.proposed, shown.files, shown.carried, shown.attempts) == (
        number,
        True,
        ["till/**"],
        0,
        None,
    )
    assert client.memories(cwd).memories == []
    client.accept_lesson(number, CloseNote(cwd=cwd))
    (shown,) = client.lessons(cwd).lessons
    assert (shown.proposed, shown.accepted_by) == (False, "you")
    assert [one.lesson for one in client.memories(cwd).memories] == [True]
    with pytest.raises(NotFound, match="is proposed in this project"):
        client.accept_lesson(number, CloseNote(cwd=cwd))
    client.forget(number, CloseNote(cwd=cwd))
    assert client.lessons(cwd).lessons == []


def test_what_a_briefing_carries_is_recorded_once(house: QuietSquad, project: Project):
    number = propose(house, project)
    client, context = house.client, house.office.context
    client.accept_lesson(number, CloseNote(cwd=project.cwd))
    fits, other = (project.dispatch("x", "true", files=[glob]) for glob in ("till/a.py", "doors/a.py"))
    for ticket in (fits, fits, other):
        with context.store.read() as tx:
            found = tickets.get(tx, ticket)
        text = "\n".join(spec.recalled(context, found))
        assert ("Mind the till. (lesson" in text) == (ticket == fits)
    with context.store.read() as tx:
        assert notes.users(tx, number) == {fits}


def test_a_leader_accepts_what_was_proposed_and_no_other_agent_does(house: QuietSquad):
    office = house.office
    with office.context.store.write() as tx:
        number = notes.propose(tx, 1, "Mind the gap.", files=[], labels=[], ticket=1).id
    leader = office.hire("lea", role="leader")
    assert number in [one["lesson"] for one in leader.use("legion-note").data["proposed_lessons"]]
    with pytest.raises(BadInput, match="not two of them"):
        leader.use("legion-note", accept=number, text="x")
    for one in (office.hire("tom", role="tester"), office.hire("tim", leader, role="leader")):
        with pytest.raises(NotAllowed):
            one.legion.accept_lesson(number, CloseNote())
    assert leader.use("legion-note", accept=number).data == {"accepted": [number]}
    assert office.person.lessons(office.cwd).lessons[-1].accepted_by == "lea"
