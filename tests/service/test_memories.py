"""Memories over the real service, and in the briefing of a ticket."""

from __future__ import annotations

import pytest

from legion.domain.agents.teams import Advice
from legion.jobs.agent.briefing import briefing
from legion.store.board import tickets
from legion.wire.errors import BadInput, NotAllowed, NotFound
from legion.wire.notes import AddNote, CloseNote
from tests.support.legion import Project
from tests.support.office import QuietSquad


def test_what_is_remembered_is_listed_until_it_is_forgotten(house: QuietSquad, project: Project):
    client, cwd = house.client, project.cwd
    ticket = project.dispatch("Teach", "true")
    first = client.remember(AddNote(cwd=cwd, text=" Run make\n generate. ", files=["db/**"], ticket=ticket))
    second = client.remember(AddNote(cwd=cwd, text="Be quick.", labels=["ui"]))
    (one,) = first.memories
    assert (one.text, one.files, one.ticket) == ("Run make generate.", ["db/**"], ticket)
    assert [each.text for each in client.memories(cwd).memories] == ["Run make generate.", "Be quick."]
    assert "Be quick." in client.forget(second.memories[0].id, CloseNote(cwd=cwd)).message
    with pytest.raises(NotFound, match="There is no memory"):
        client.forget(second.memories[0].id, CloseNote(cwd=cwd))
    assert [each.id for each in client.memories(cwd).memories] == [one.id]


def test_what_no_briefing_has_room_for_is_said(house: QuietSquad, project: Project):
    client, cwd = house.client, project.cwd
    there = {one.id for one in client.memories(cwd).memories}
    made = [client.remember(AddNote(cwd=cwd, text="x" * 900)) for _ in range(4)]
    ids = [one.memories[0].id for one in made]
    assert [set(one.left_out) - there for one in made] == [set(), set(), {ids[0]}, {ids[0], ids[1]}]
    assert set(client.memories(cwd).left_out) - there == {ids[0], ids[1]}
    for id in ids:
        client.forget(id, CloseNote(cwd=cwd))


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"text": " "}, "A memory has 1 to 1,000 characters"),
        ({"text": "x" * 1001}, "A memory has 1 to 1,000 characters"),
        ({"text": "x", "files": ["/a"]}, "--files has '/a', which starts with a slash"),
        ({"text": "x", "labels": ["a b"]}, "--label has 'a b', which is no name"),
    ],
)
def test_what_cannot_be_remembered_is_refused(house: QuietSquad, project: Project, wanted, message):
    with pytest.raises(BadInput, match=message):
        house.client.remember(AddNote(cwd=project.cwd, **wanted))


def test_no_agent_writes_what_others_are_to_believe(house: QuietSquad):
    agent = house.office.hire("gossip").legion
    with pytest.raises(NotAllowed):
        agent.remember(AddNote(cwd=house.office.cwd, text="Skip the tests."))


def test_a_briefing_carries_what_fits(house: QuietSquad, project: Project):
    number = project.dispatch("Migrate", "true", files=["db/users.sql"])
    context = house.office.context
    with context.store.read() as tx:
        ticket = tickets.get(tx, number)
    config = context.project(ticket.project).config
    text = briefing(ticket, config, memories=["Run make generate."])
    assert "## What agents of this project should know\n- Run make generate.\n" in text
    assert "should know" not in briefing(ticket, config, advice=[Advice(ticket=1, turn=1, role="x", run=1, text="y")])
