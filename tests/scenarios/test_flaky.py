"""A check that is red and green on the same tree blames nobody; what lands is what was tested, in every mode."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.gates import Gate
from tests.support.legion import Project, Squad

COMMIT = "git add -A; git -c user.name=a -c user.email=a@b commit -qm"


def red_once(house: Squad, name: str, where: str) -> str:
    """A check that is red the first time in which this holds, and green from then on."""
    flag = house.folder / "gates" / name
    return f"if {where} && [ ! -e {flag} ]; then touch {flag}; echo unlucky; exit 1; fi; sh check.sh"


def test_a_flaky_check_proof_or_checkpoint_costs_no_attempt_and_one_that_stays_red_does(
    house: Squad, make: Callable[..., Project]
):
    project = make(f"[checks.test]\nrun = '''{red_once(house, 'lone', '[ -e a.txt ]')}'''\n")
    ticket = project.dispatch("a", "echo a > a.txt")
    project.until_settled()
    page = project.ticket(ticket)
    assert (page.ticket.state, page.ticket.attempt) == ("done", 1)
    told = [event for event in project.squad.client.history(project.cwd).lines if event.kind == "check.flaky"]
    assert [event.rule for event in told] == ["flaky-blames-none"]
    assert "is flaky: red, then green on the same tree (once in 7 days)" in project.notes()
    (finding,) = [one for one in project.squad.client.doctor(project.cwd).findings if one.name == "flaky checks"]
    assert not finding.ok

    proof, look = red_once(house, "proof", "true"), red_once(house, "look", "true")
    proven = project.dispatch("b", "echo b > b.txt", prove=[proof])
    point = project.dispatch("look", "", checkpoint=True, after=[proven], prove=[look])
    project.until_settled()
    assert (project.state(proven), project.ticket(proven).ticket.attempt) == ("done", 1)
    assert project.state(point) == "done"

    before = len(project.squad.client.history(project.cwd, last=0).lines)
    bad = project.dispatch("bad", "echo BROKEN > c.txt", max_attempts=1)
    project.until_settled()
    assert project.state(bad) == "failed", "a check that stays red still sends back"
    lines = project.squad.client.history(project.cwd, last=0).lines[before:]
    red = [line.data["commit"] for line in lines if line.kind == "check.receipt" and line.data["verdict"] == "red"]
    assert len(red) == 2
    assert len(set(red)) == 1


def test_a_flaky_batch_lands_whole(house: Squad, make: Callable[..., Project], gate: Gate):
    flaky = red_once(house, "batch", "[ -e change0.txt ] && [ -e change1.txt ]")
    hold = f"if [ -e hold.txt ] && ! ls change*.txt; then {gate.pause}; fi"
    project = make(f"[checks.test]\nrun = '''{hold}; {flaky}'''\n[agents]\nattempts = 1\n")
    project.dispatch("hold", "touch hold.txt")
    gate.arrived()
    tickets = [project.dispatch(f"change {n}", f"echo {n} > change{n}.txt") for n in range(3)]
    for ticket in tickets:
        project.until(ticket, "landing")
    gate.open()
    project.until_settled()
    assert [project.state(ticket) for ticket in tickets] == ["done"] * 3
    sizes = [line for line in project.squad.client.history(project.cwd).lines if line.kind == "landing.batch-size"]
    # What was flaky teaches nothing about changes.
    assert [line.data["to"] for line in sizes][-1:] in ([], [32])


@pytest.mark.parametrize(
    ("mode", "subjects", "parents"),
    [
        ("merge", ["Write two files", "a second step", "a first step"], 2),
        ("squash", ["Write two files"], 1),
        ("rebase", ["a second step", "a first step"], 1),
    ],
)
def test_what_lands_is_what_was_tested_and_each_mode_shapes_a_history_that_says_who_made_it(
    make: Callable[..., Project], gate: Gate, mode: str, subjects: list[str], parents: int
):
    project = make(f"[checks.test]\nrun = 'sh check.sh'\n[landing]\nmode = '{mode}'\n[agents]\nattempts = 2\n")
    agent = f"echo x$LEGION_ATTEMPT > a.txt; {COMMIT} 'a first step'; echo b > b.txt; {COMMIT} 'a second step'"
    last = project.dispatch("Write two files", f"{gate.pause}; {agent}", text="Both of them.")
    gate.arrived()
    late = f'if [ "$LEGION_ATTEMPT" = 1 ]; then echo BROKEN > c.txt; else echo c > c.txt; fi; {COMMIT} "another step"'
    meanwhile = project.dispatch("Write another", late)
    project.until(meanwhile, "done")
    gate.open()
    project.until_settled()
    assert project.states() == {last: "done", meanwhile: "done"}
    assert [project.landed(f"{name}.txt") for name in "abc"] == ["x1\n", "b\n", "c\n"]
    for ticket, attempts in ((last, 1), (meanwhile, 2)):
        page = project.ticket(ticket)
        landed = next(event.data for event in page.history if event.kind == "landing.landed")
        tree = project.hub_git("rev-parse", f"{landed['tested']}^{{tree}}").strip()
        assert {receipt.tree for receipt in page.receipts if receipt.verdict == "green"} == {tree}
        found = project.hub_git("log", "--format=%(trailers:only)", f"--grep=^Ticket: {ticket}$", "refs/legion/target")
        wanted = [f"Ticket: {ticket}", "Agent: command", f"Attempts: {attempts}"]
        assert [line for line in found.splitlines() if line][-3:] == wanted
    history = project.history()
    assert [subject for subject in history if subject not in ("another step", "Write another", "first")] == subjects
    assert len(project.hub_git("log", "-1", "--format=%P", "refs/legion/target").split()) == parents
    shown = project.landed_titles()
    if mode == "rebase":
        assert [line for line in shown if "step" in line] == [
            *("a second step", "a first step", "another step", "another step")
        ]
    else:
        assert shown[:2] == ["Write two files", "Write another"]
        body = project.hub_git("log", "-1", "--format=%b", "--grep=^Ticket: " + str(last) + "$", "refs/legion/target")
        assert body.startswith("Both of them.")
