"""A change behind the person's gate passes everything, waits, and lands when they say so. Trying changes out before."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from legion.wire.board import MoveInQueue, TryChanges
from legion.wire.errors import StateConflict
from legion.wire.mail import AnswerQuestion, WaitingLine
from legion.wire.plans import EpicGate
from legion.wire.tickets import EditTicket
from tests.scenarios.conftest import Make
from tests.support.gates import Gate
from tests.support.legion import Project
from tests.support.repository import CHECK

GATED = CHECK + '\n[landing]\ngate = "person"\n'


def waiting_at_gate(project: Project, ticket: int) -> int:
    """The number of the question about it."""
    project.until(ticket, "parked")
    (question,) = project.ticket(ticket).questions
    assert question.kind == "gate"
    assert "legion " not in question.words
    return question.id


def what_waits(project: Project) -> list[WaitingLine]:
    """Of this project: tests share a daemon."""
    found = project.squad.client.inbox().waiting
    return [one for one in found if one.root == str(project.cwd)]


def test_a_green_change_waits_for_the_person_and_lands_when_they_say_so(make: Make):
    project = make(GATED)
    client = project.squad.client
    ticket = project.dispatch("write a", "echo a > a.txt")
    free = project.dispatch("write b", "echo b > b.txt", gate="auto")
    question = waiting_at_gate(project, ticket)
    page = project.ticket(ticket)
    assert [(one.command, one.verdict) for one in page.receipts] == [("sh check.sh", "green")]
    assert page.ticket.reason == "it passed everything and waits for you"
    project.until(free, "done")
    assert project.landed("a.txt") is None
    assert [one.id for one in client.inbox().questions if one.ticket == ticket] == [question]

    (asked,) = page.questions
    assert asked.facts["change"] == "1 file, +1 -0"
    assert re.fullmatch(r"test green in \d+\.\d s", asked.facts["checks"])
    assert asked.facts["risk"] == "low: no rule speaks against it"
    assert [(one.kind, one.id, one.ticket, one.holds_up) for one in what_waits(project)] == [
        ("question", question, ticket, 1),
        ("collect", 0, None, 0),
    ]

    (line,) = client.merge_queue(project.cwd).changes
    assert (line.ticket, line.state, line.place) == (ticket, "gate", 0)
    assert client.land(ticket).message == f"Ticket {ticket} goes into the merge queue."
    project.until(ticket, "done")
    assert project.landed("a.txt") == "a\n"
    assert client.merge_queue(project.cwd).changes == []
    with pytest.raises(StateConflict, match="has landed already"):
        client.land(ticket)


def test_a_gate_for_risk_lets_a_small_change_pass_and_says_so_and_holds_the_others(make: Make):
    project = make(GATED.replace('"person"', '"risk"'))
    client = project.squad.client
    small = project.dispatch("write a", "echo a > a.txt")
    project.until(small, "done")
    settled = [one for one in client.history(project.cwd, small).lines if one.kind.startswith("question.")]
    assert [(one.kind, one.data["choice"], one.data["by"]) for one in settled] == [("question.settled", "land", "rule")]
    assert settled[0].data["why"] == "low: no rule speaks against it"
    large = project.dispatch("write many", "seq 60 > many.txt")
    named = project.dispatch("change the schema", "echo 'create table a (b);' > a.sql")
    binary = project.dispatch("draw", "head -c 9000 /dev/zero > a.bin")
    waiting_at_gate(project, binary)
    assert project.ticket(binary).questions[0].facts["risk"] == "middle: git shows no lines of it (a.bin)"
    client.land(binary)
    after = project.dispatch("write z", "echo z > z.txt", after=[named])
    for ticket, risk in ((large, "middle: it changes 60 lines"), (named, "high: it changes the database (a.sql)")):
        waiting_at_gate(project, ticket)
        assert project.ticket(ticket).questions[0].facts["risk"].startswith(risk)
    # What holds up most comes first.
    assert [one.ticket for one in what_waits(project) if one.kind == "question"] == [named, large]
    client.land(named)
    project.until(after, "done")


def test_what_failed_waits_with_the_end_of_what_its_check_said_and_is_tried_again_from_there(make: Make):
    project = make(CHECK)
    ticket = project.dispatch("mend", "echo BROKEN > a.txt", max_attempts=1)
    project.until(ticket, "failed")
    client = project.squad.client
    (line,) = what_waits(project)
    assert (line.kind, line.id, line.title, line.offers) == ("failed", ticket, "mend", ["retry", "drop"])
    assert line.facts["tried"] == "1 attempt"
    assert line.facts["output"] == "./a.txt"
    assert line.facts["failed"].startswith("sh check.sh: ")
    client.drop(ticket)
    assert what_waits(project) == []


def test_a_red_change_goes_back_before_it_reaches_the_gate_which_may_be_edited_there(make: Make):
    project = make(GATED)
    agent = '[ "$LEGION_ATTEMPT" = 1 ] && echo BROKEN > a.txt || echo fine > a.txt'
    ticket = project.dispatch("mend", agent)
    waiting_at_gate(project, ticket)
    assert project.ticket(ticket).ticket.attempt == 2
    # A held change is passed by, and an edited gate counts at once.
    client = project.squad.client
    with pytest.raises(StateConflict, match="not in the merge queue"):
        client.move_in_queue(ticket, MoveInQueue(to="first"))
    client.edit(ticket, EditTicket(gate="auto"))
    client.resume_ticket(ticket)
    project.until(ticket, "done")


def test_the_answer_of_the_inbox_sends_a_change_back_and_the_next_one_is_asked_about_again(project: Project):
    client = project.squad.client
    ticket = project.dispatch("write", 'echo "$LEGION_ATTEMPT" > a.txt', gate="person")
    first = waiting_at_gate(project, ticket)
    client.answer(first, AnswerQuestion(choice="back", why="Twice, please."))
    project.until_true(lambda: project.ticket(ticket).ticket.attempt == 2)
    second = waiting_at_gate(project, ticket)
    assert second != first
    assert "Twice, please." in project.ticket(ticket).feedback
    client.answer(second, AnswerQuestion(choice="land"))
    project.until(ticket, "done")
    assert project.landed("a.txt") == "2\n"


def test_changes_are_tried_together_before_they_land_and_the_checkout_stays_as_it_was(make: Make):
    project = make(GATED)
    client, before = project.squad.client, project.repository.git("status", "--porcelain=v2", "--branch")
    one = project.dispatch("one", "echo one > one.txt")
    two = project.dispatch("two", "echo two > two.txt")
    clash = project.dispatch("clash", "echo other > one.txt")
    for ticket in (one, two, clash):
        waiting_at_gate(project, ticket)

    alone = client.try_changes(TryChanges(cwd=project.cwd, tickets=[two]))
    assert files(alone.path) == {"two.txt": "two\n"}
    both = client.try_changes(TryChanges(cwd=project.cwd, tickets=[two, one]))
    assert files(both.path) == {"one.txt": "one\n", "two.txt": "two\n"}
    with pytest.raises(StateConflict, match=r"conflicts with .* in one\.txt"):
        client.try_changes(TryChanges(cwd=project.cwd, tickets=[one, clash]))
    (Path(alone.path) / "mine.txt").write_text("mine\n")
    tomorrow = client.try_changes(TryChanges(cwd=project.cwd))
    assert (tomorrow.tickets, tomorrow.left_out) == ([one, two], {str(clash): "it conflicts in one.txt"})
    again = client.try_changes(TryChanges(cwd=project.cwd, tickets=[two]))
    assert (again.path, files(again.path)) == (alone.path, {"two.txt": "two\n"})

    ran = project.squad.cli("try", str(two), "--run", "cat two.txt; exit 5", cwd=project.repository.root)
    assert (ran.returncode, ran.stdout) == (5, "two\n")
    assert project.repository.git("status", "--porcelain=v2", "--branch") == before
    assert project.landed("two.txt") is None
    assert not [one for one in client.doctor(project.cwd).findings if "try-" in one.detail]


def test_a_gate_that_the_epic_gets_while_its_change_is_tested_holds_it(make: Make, gates: Callable[[], Gate]):
    gate = gates()
    project = make(CHECK.replace("sh check.sh", f"[ ! -e hold ] || {gate.pause}".replace('"', '\\"')))
    ticket = project.dispatch("hold it", "touch hold", epic="drinks")
    gate.arrived()
    project.squad.client.epic_gate(EpicGate(cwd=project.cwd, epic="drinks", gate="person"))
    gate.open(20)
    waiting_at_gate(project, ticket)
    assert project.landed("hold") is None


def files(tree: str) -> dict[str, str]:
    return {name: (Path(tree) / name).read_text() for name in ("one.txt", "two.txt") if (Path(tree) / name).exists()}
