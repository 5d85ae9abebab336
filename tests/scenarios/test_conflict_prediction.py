"""Conflicts seen early over a real daemon: on the board, told to the agents, counted; and tickets kept apart."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from legion.wire.history import HistoryLine
from tests.support.gates import Gate
from tests.support.legion import Project, new
from tests.support.looking import until_seen
from tests.support.models import company

LOOKING = "[checks.test]\nrun = 'sh check.sh'\n[conflicts]\nlook_every = 0.2\n"


def merging(gate: Gate) -> str:
    return (
        "if grep -q '<<<<<<<' README.txt; then sed -i '/^<<<<<<<\\|^=======\\|^>>>>>>>/d' README.txt; "
        f"else echo $LEGION_TICKET > README.txt; {gate.pause}; fi"
    )


def test_who_will_conflict_is_on_the_board_before_it_happens_and_counted_when_it_has_and_gone_when_they_part(
    make: Callable[..., Project], gates: Callable[[], Gate]
):
    project, gate, first = make(LOOKING), gates(), gates()
    one, two = project.dispatch_all([new("one", merging(gate)), new("two", merging(gate))])
    other = project.dispatch("other", f"echo o > other.txt; {gate.pause}")
    gate.arrived(3)
    project.until_true(lambda: bool(project.ticket(one).clashes))
    page = project.ticket(two)
    assert [(line.ticket, line.path, line.first, line.their_first) for line in page.clashes] == [
        (one, "README.txt", 1, 1)
    ]
    lines = {line.id: line.conflicts_with for line in project.squad.client.status(project.cwd).tickets}
    assert lines == {one: [two], two: [one], other: []}
    cwd = project.repository.root
    assert f"will conflict with #{two}" in project.squad.cli("status", cwd=cwd).stdout
    assert f"README.txt line 1  with ticket {one}" in project.squad.cli("ticket", str(two), cwd=cwd).stdout
    gate.open(3)
    project.until_settled()
    assert set(project.states().values()) == {"done"}
    assert not project.ticket(two).clashes
    found = {one.name: one.detail for one in project.squad.client.doctor(project.cwd).findings}
    assert found["conflicts seen early"].startswith("1: 1 happened")

    before = len(told_of(project))
    one = project.dispatch("one", f"echo 1 > README.txt; {gate.pause}")
    parts = f"echo 2 > README.txt; {first.pause}; git checkout -q README.txt; echo 2 > two.txt; {gate.pause}"
    two = project.dispatch("two", parts)
    first.arrived()
    project.until_true(lambda: [line.kind for line in told_of(project)[before:]] == ["conflict.predicted"])
    first.open()
    kinds = ["conflict.predicted", "conflict.gone"]
    project.until_true(lambda: [line.kind for line in told_of(project)[before:]] == kinds)
    seen = told_of(project)[before]
    other = two if seen.ticket == one else one
    assert seen.words == f"will conflict with #{other} in README.txt"
    page_of_it = project.squad.cli("ticket", str(seen.ticket), "--full", cwd=cwd).stdout
    assert f"will conflict with #{other} in README.txt" in page_of_it
    gate.open(2)
    project.until_settled()
    assert set(project.states().values()) == {"done"}


def told_of(project: Project) -> list[HistoryLine]:
    history = project.squad.client.history(project.cwd, last=0)
    return [line for line in history.lines if line.kind in ("conflict.predicted", "conflict.gone")]


def test_the_rule_keeps_tickets_with_the_same_files_apart(make: Callable[..., Project], gate: Gate):
    project = make(f"{LOOKING}overlap = 'rule'\n")
    one, two, other = project.dispatch_all(
        [
            new("one", f"{gate.pause}; echo 1 >> README.txt", files=["README.txt"]),
            new("two", "echo 2 >> README.txt", files=["*.txt"]),
            new("other", "echo 3 > src.py", files=["*.py"]),
        ]
    )
    gate.arrived()
    project.until(other, "done")
    waits = project.ticket(two).ticket
    assert (waits.state, waits.attempt, waits.doing) == ("queued", 0, f"waits for {one}, at work on the same files")
    gate.open()
    project.until_settled()
    assert project.landed("README.txt") == "hello\n1\n2\n"
    assert [project.ticket(ticket).ticket.attempt for ticket in (one, two)] == [1, 1]


def test_claude_code_is_told_while_it_works(tmp_path: Path):
    with company(tmp_path, config=LOOKING, stand_in=True) as here:
        gate = Gate(tmp_path / "gates", "foresight")
        for name in ("left", "right"):
            here.script(
                name,
                f"""
                [[step]]
                say = "I work."
                call = {{tool = "Bash", input = {{command = {json.dumps(f"echo {name} > README.txt; {gate.pause}")}}}}}

                [[step]]
                say = "Done."
                """,
            )
        left, right = here.dispatch("left", max_attempts=1), here.dispatch("right", max_attempts=1)
        gate.arrived(2)
        here.project.until_true(lambda: bool(here.project.ticket(left).clashes))

        def told(ticket: int) -> list[str]:
            return [str(event.facts["text"]) for event in here.journal(ticket) if event.kind == "told"]

        until_seen(here.squad, lambda: told(left) and told(right), "what both were told")
        gate.open(2)
        here.project.until_settled()
        (words,) = told(left)
        assert f"The agent of ticket {right} (play right) changes lines that you change too" in words
        assert "- README.txt, line 1" in words
        heard = [event.kind for event in here.journal(left) if event.kind == "heard"]
        assert heard
        gate.close()
