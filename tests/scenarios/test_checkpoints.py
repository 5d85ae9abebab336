"""A red checkpoint makes a ticket that mends it and waits for that; nothing behind it moves before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.wire.dispatch import NewTicket
from tests.scenarios.conftest import settings_with_gates
from tests.support.gates import Gate
from tests.support.legion import Project, Squad, new, squad
from tests.support.repository import Repository

ONLY_ONE = "test $(cat *.txt | grep -c mine) -le 1"
MEND = "grep -q together $LEGION_BRIEFING || exit 1; echo yours > b.txt"


@pytest.fixture(scope="module")
def legion(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Squad]:
    """Tickets without a command are for the program that each repository brings."""
    folder = tmp_path_factory.mktemp("checkpoints")
    settings = f"{settings_with_gates(folder)}[drivers.mender]\nrun = 'sh mender.sh'\n"
    with squad(folder, settings=settings) as one:
        yield one


def started(legion: Squad, folder: Path, mender: str, config: str = "") -> Project:
    checks = '[checks.test]\nrun = "sh check.sh"\n[agents]\nattempts = 1\n'
    repository = Repository(folder / "ada", f"{checks}{config}")
    repository.commit("a mender", {"mender.sh": mender})
    return legion.adopt(repository)


def board(prove: list[str]) -> list[NewTicket]:
    """Two tickets that do not get along, a checkpoint behind them, and one that waits for it."""
    return [
        new("a", "echo mine > a.txt", key="a"),
        new("b", "echo mine > b.txt", key="b"),
        new(
            "together", key="gate", checkpoint=True, after_keys=["a", "b"], prove=prove, epic="e", criteria="They agree"
        ),
        new("after", "cp b.txt d.txt", after_keys=["gate"]),
    ]


def test_two_tickets_that_are_red_together_are_mended_before_anything_goes_on(legion: Squad, tmp_path: Path):
    project = started(legion, tmp_path, MEND)
    a, b, gate, after = project.dispatch_all(board([f"1 :: {ONLY_ONE}"]))
    project.until(after, "done")
    (fix,) = set(project.states()) - {a, b, gate, after}
    assert set(project.states().values()) == {"done"}
    assert project.landed("d.txt") == "yours\n"
    mended = project.ticket(fix)
    assert mended.ticket.title == f"Fix what checkpoint {gate} found: together"
    assert (mended.prove, mended.ticket.epic) == ([ONLY_ONE], "e")
    assert [(one.backing, one.by) for one in mended.evidence] == [("proven", ONLY_ONE)]
    assert f"- {a}: a" in mended.context
    page = project.ticket(gate)
    assert page.ticket.after == [a, b, fix]
    assert [(one.backing, one.by) for one in page.evidence] == [("proven", ONLY_ONE)]
    assert (ONLY_ONE, "green") in {(receipt.command, receipt.verdict) for receipt in page.receipts}
    reasons = [str(event.data["reason"]) for event in page.history if event.kind == "ticket.moved"]
    assert f"ticket {fix} fixes it: checks failed on the landed code: `{ONLY_ONE}`" in reasons
    assert project.ticket(after).runs[0].started_at >= page.ticket.moved_at


def test_a_checkpoint_whose_fix_fails_holds_everything_up(legion: Squad, tmp_path: Path):
    project = started(legion, tmp_path, "exit 1")
    a, b, gate, after = project.dispatch_all(board([ONLY_ONE]))
    state = project.until_settled()
    (fix,) = set(project.states()) - {a, b, gate, after}
    assert project.states() == {a: "done", b: "done", gate: "queued", after: "queued", fix: "failed"}
    assert sorted(state.stuck) == [gate, after]
    assert project.ticket(gate).ticket.doing == f"held up by {fix}"


def test_after_so_many_fixes_a_checkpoint_fails(legion: Squad, tmp_path: Path):
    gate = Gate(legion.folder / "gates", "mender")
    project = started(legion, tmp_path, f"{gate.pause}; {MEND}", "[checkpoints]\nfixes = 1\n")
    *_, checkpoint, after = project.dispatch_all(board([ONLY_ONE]))
    gate.arrived()
    project.pause()
    gate.open()
    fix = after + 1
    project.until(fix, "done")
    project.repository.commit("one more", {"c.txt": "mine\n"})
    project.until_true(lambda: project.landed("c.txt") == "mine\n")
    project.resume()
    page = project.until(checkpoint, "failed")
    assert page.ticket.reason == f"checks failed on the landed code: `{ONLY_ONE}` after 1 fixing ticket"
    assert project.state(after) == "queued"
    gate.close()
