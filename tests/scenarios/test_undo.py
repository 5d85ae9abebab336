"""A landed ticket is taken back through the same merge queue; what happened can be replayed, with its rules."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from legion.wire.errors import LegionError
from tests.support.gates import Gate
from tests.support.legion import Project


def undo(project: Project, ticket: int) -> int:
    return project.squad.client.undo(ticket).tickets[0]


@pytest.mark.parametrize("mode", ["merge", "squash", "rebase"])
def test_an_undo_and_its_undo_land_in_every_mode(make: Callable[..., Project], mode: str):
    project = make(f"[checks.test]\nrun = 'sh check.sh'\n[landing]\nmode = '{mode}'\n")
    commits = "git add -A; git -c user.name=a -c user.email=a@b commit -qm"
    agent = f"echo one > a.txt; {commits} 'one'; echo two >> README.txt; {commits} 'two'"
    ticket = project.dispatch("two commits", agent)
    project.until_settled()
    other = project.dispatch("something else", "echo b > b.txt")
    project.until_settled()
    back = undo(project, ticket)
    project.until_settled()
    assert project.state(back) == "done"
    assert (project.landed("a.txt"), project.landed("README.txt"), project.landed("b.txt")) == (None, "hello\n", "b\n")
    page = project.ticket(back)
    assert page.ticket.undoes == ticket
    assert [receipt.verdict for receipt in page.receipts] == ["green"]
    assert project.ticket(ticket).undone_by == [back]
    again = undo(project, back)
    project.until_settled()
    assert (project.landed("a.txt"), project.landed("README.txt")) == ("one\n", "hello\ntwo\n")
    assert project.states() == dict.fromkeys((ticket, other, back, again), "done")


def test_what_cannot_be_taken_back_is_one_sentence_and_no_ticket_or_a_ticket_that_fails(make: Callable[..., Project]):
    project = make("[checks.test]\nrun = 'test ! -e needs.txt || test -e a.txt'\n")
    first = project.dispatch("first", "echo one > README.txt")
    project.until_settled()
    second = project.dispatch("second", "echo two > README.txt")
    project.until_settled()
    with pytest.raises(LegionError, match=r"cannot be undone alone.*README\.txt"):
        undo(project, first)
    point = project.dispatch("look", "", checkpoint=True)
    project.until_settled()
    with pytest.raises(LegionError, match="is a checkpoint"):
        undo(project, point)
    back = undo(project, second)
    with pytest.raises(LegionError, match=f"undone by ticket {back}"):
        undo(project, second)
    project.until_settled()
    undo(project, first)
    project.until_settled()
    assert project.landed("README.txt") == "hello\n"
    with pytest.raises(LegionError, match="There is no ticket 999999"):
        undo(project, 999999)

    # An undo that turns the checks red fails, and the target stays.
    needed = project.dispatch("a", "echo a > a.txt")
    project.until_settled()
    project.dispatch("needs a", "touch needs.txt")
    project.until_settled()
    back = undo(project, needed)
    project.until_settled()
    page = project.ticket(back)
    assert (page.ticket.state, page.cause) == ("failed", "checks")
    assert project.landed("a.txt") == "a\n"
    # What fails may be tried again, once what stood in its way is gone.
    project.dispatch("needs it no more", "rm needs.txt")
    project.until_settled()
    project.retry(back)
    project.until_settled()
    assert (project.state(back), project.landed("a.txt")) == ("done", None)


def test_events_replay_a_ticket_with_the_journals_of_its_runs_and_name_every_rule(project: Project, gate: Gate):
    agent = f'if [ "$LEGION_ATTEMPT" = 1 ]; then echo BROKEN > a.txt; else {gate.pause}; echo fine > a.txt; fi'
    ticket = project.dispatch("mend", agent)
    gate.arrived()
    cwd = project.repository.root
    early = json.loads(project.squad.cli("events", str(ticket), "--json", cwd=cwd).stdout)
    gate.open()
    project.until_settled()
    client = project.squad.client
    found = client.history(project.cwd, ticket=ticket)
    moves = [(line.data["step"], line.rule) for line in found.lines if line.kind == "ticket.moved"]
    assert moves == [
        ("start", "ready"),
        ("propose", "tree-decides"),
        ("prove", "proven"),
        ("tryagain", "red-goes-back"),
        ("start", "ready"),
        ("propose", "tree-decides"),
        ("prove", "proven"),
        ("land", "green-lands"),
    ]
    assert all(line.why for line in found.lines if line.rule)
    runs = [run.id for run in project.ticket(ticket).runs]
    for run in runs:
        assert [line.kind for line in found.lines if line.source == "run" and line.run == run][-1] == "ended"
    assert [line.at for line in found.lines] == sorted(line.at for line in found.lines)
    later = client.history(project.cwd, ticket=ticket, after=early["cursor"])
    # What is learnt from the red attempt may be recorded after the ticket has landed.
    whole = client.history(project.cwd, ticket=ticket)
    numbers = [(line["source"], line["run"], line["n"]) for line in early["lines"]]
    numbers += [(line.source, line.run, line.n) for line in later.lines]
    assert len(numbers) >= len(found.lines)
    assert sorted(numbers, key=str) == sorted(
        ((line.source, line.run, line.n) for line in whole.lines[: len(numbers)]), key=str
    )
    one = client.history(project.cwd, ticket=ticket, run=runs[0])
    assert {line.run for line in one.lines} == {runs[0]}
    told = project.squad.cli("events", str(ticket), "-f", cwd=cwd)
    assert "[red-goes-back]" in told.stdout
    assert told.returncode == 0
    all_of_it = project.squad.cli("events", cwd=cwd).stdout
    assert f"#{ticket}" in all_of_it
    assert "target.moved" in all_of_it
