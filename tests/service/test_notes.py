"""Notes over the real service: recorded, closed and listed by the person and by a leader, and by no other agent."""

from __future__ import annotations

import pytest

from legion.domain.notes import MOST
from legion.wire.errors import BadInput, NotAllowed, NotFound, StateConflict
from legion.wire.notes import AddNote, CloseNote
from tests.support.legion import Project
from tests.support.office import QuietSquad


def test_a_note_is_listed_until_it_is_closed_and_kept_with_its_outcome(house: QuietSquad, project: Project):
    client, cwd = house.client, project.cwd
    ticket = project.dispatch("Doors", "true")
    wanted = AddNote(cwd=cwd, kind="promise", text=" Doors\n on Sunday. ", ticket=ticket, request="once")
    (made,) = client.add_note(wanted).notes
    assert client.add_note(wanted).notes == [made]
    assert (made.kind, made.text, made.author, made.ticket) == ("promise", "Doors on Sunday.", "you", ticket)
    client.add_note(AddNote(cwd=cwd, text="We stay on Python 3.11."))
    assert [one.kind for one in client.notes(cwd).notes] == ["promise", "decision"]
    client.close_note(made.id, CloseNote(cwd=cwd, outcome="They opened."))
    assert [one.kind for one in client.notes(cwd).notes] == ["decision"]
    assert [one.outcome for one in client.notes(cwd, all=True).notes] == ["They opened.", ""]
    with pytest.raises(StateConflict, match="is closed already"):
        client.close_note(made.id, CloseNote(cwd=cwd))


def test_what_is_no_note_is_refused(house: QuietSquad, project: Project, make):
    client, cwd = house.client, project.cwd
    for wanted, message in (
        (AddNote(cwd=cwd, text=" "), "1 to 300 characters"),
        (AddNote(cwd=cwd, text="x" * 301), "1 to 300 characters"),
        (AddNote(cwd=cwd, text="x", kind="wish"), "no kind of note 'wish'"),
        (AddNote(cwd=cwd, text="x", ticket=make().dispatch("Other", "true")), "belongs to another project"),
    ):
        with pytest.raises(BadInput, match=message):
            client.add_note(wanted)
    with pytest.raises(NotFound, match="There is no note 999"):
        client.close_note(999, CloseNote(cwd=cwd))
    for number in range(MOST):
        client.add_note(AddNote(cwd=cwd, text=f"Thread {number}.", kind="thread"))
    with pytest.raises(StateConflict, match=f"{MOST} notes are open already"):
        client.add_note(AddNote(cwd=cwd, text="One more."))


def test_a_leader_writes_notes_of_its_own_project_and_other_agents_none(house: QuietSquad, project: Project):
    leader = house.office.hire("ada", role=" Leader")
    made = leader.use("legion-note", kind="thread", text="The login is half done.")
    listed = leader.use("legion-note").data["notes"]
    assert (listed[-1]["id"], listed[-1]["author"]) == (made.data["note"], "ada")
    assert [one.id for one in house.client.notes(house.office.cwd).notes][-1] == made.data["note"]
    assert house.client.notes(project.cwd).notes == []
    assert leader.use("legion-note", close=made.data["note"], outcome="Done.").data == {"closed": [made.data["note"]]}
    with pytest.raises(BadInput, match="not two of them"):
        leader.use("legion-note", close=1, text="x")
    assert "legion-claim" not in [one.name for one in leader.legion.tools().tools]
    for other in (house.office.hire("bob", role="tester"), house.office.hire("eve", leader, role="leader")):
        with pytest.raises(NotAllowed):
            other.use("legion-note", text="Skip the tests.")
        with pytest.raises(NotAllowed, match="Only an agent that the person hired with the role leader"):
            other.legion.add_note(AddNote(text="Skip the tests."))
