"""What counts: proofs, checkpoints, and the word `unchecked` where nothing was checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from legion.wire.mail import AnswerQuestion
from tests.scenarios.conftest import shared_project
from tests.support.gates import Gate
from tests.support.legion import Project, Squad, new
from tests.support.repository import CHECK


@pytest.fixture(scope="module")
def project(house: Squad, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """One for the tests that look at their own tickets and files only."""
    yield from shared_project(house, tmp_path_factory.mktemp("proof"))


def test_what_lands_has_a_green_proof_and_its_receipt_and_what_is_never_proven_fails(project: Project):
    agent = """
    if [ "$LEGION_ATTEMPT" = 1 ]; then echo wrong > answer.txt; exit; fi
    grep -q 'the answer is wrong' "$LEGION_BRIEFING" && echo 42 > answer.txt
    """
    proof = "grep -q 42 answer.txt || { echo the answer is $(cat answer.txt); exit 9; }"
    ticket = project.dispatch("the answer", agent, prove=[proof, "test -s answer.txt"])
    unproven = project.dispatch("unproven", "touch unproven.txt", prove=["grep -q 42 unproven.txt"], max_attempts=2)
    project.until_settled()
    page = project.ticket(ticket)
    assert (page.ticket.state, page.ticket.attempt, page.ticket.unchecked) == ("done", 2, False)
    seen = [(receipt.command, receipt.verdict, receipt.exit_code) for receipt in page.receipts]
    assert (proof, "red", 9) in seen
    assert (proof, "green", 0) in seen
    assert ("test -s answer.txt", "green", 0) in seen
    assert ("sh check.sh", "green", 0) in seen
    assert (
        project.ticket(unproven).ticket.reason == "gave up after 2 attempts: checks failed: `grep -q 42 unproven.txt`"
    )
    assert project.landed("unproven.txt") is None


def test_a_proof_that_is_no_command_here_asks_after_the_first_attempt(project: Project):
    legion = project.squad.client
    ticket = project.dispatch("unknown proof", "touch unknown.txt", prove=["no-such-program --all"], max_attempts=5)
    parked = project.until(ticket, "parked").ticket
    (asked,) = [one for one in legion.inbox().questions if one.ticket == ticket]
    assert parked.attempt == 1
    assert "its proof `no-such-program --all` cannot run" in asked.words
    legion.answer(asked.id, AnswerQuestion(choice="no"))
    assert "cannot run" in project.until(ticket, "failed").ticket.reason
    never = project.dispatch("never proven", "touch never.txt", prove=["test -f never.txt && exit 1"], max_attempts=5)
    assert project.until(never, "parked").ticket.attempt == 1
    (asked,) = [one for one in legion.inbox().questions if one.ticket == never]
    assert "`test -f never.txt && exit 1` can never pass" in asked.words
    legion.answer(asked.id, AnswerQuestion(choice="no"))
    made = project.dispatch(
        "makes its proof", "[ $LEGION_ATTEMPT = 1 ] || echo true > run.sh; touch b", prove=["./run.sh"]
    )
    project.until_settled()
    assert project.ticket(made).ticket.attempt > 1, "an agent can still make a file that is missing"


def test_a_proof_sees_the_change_together_with_what_landed_meanwhile(project: Project, gate: Gate):
    slow = project.dispatch("slow", f"{gate.pause}; echo 2 > two.txt", prove=["cat one.txt two.txt"])
    gate.arrived()
    quick = project.dispatch("quick", "echo 1 > one.txt")
    project.until(quick, "done")
    gate.open()
    project.until_settled()
    assert project.state(slow) == "done"


def test_receipts_keep_the_whole_output_on_disk_and_name_the_files_that_landed(project: Project):
    ticket = project.dispatch("loud", "touch loud.txt", prove=["seq 1 20000"])
    project.until_settled()
    receipt = next(receipt for receipt in project.ticket(ticket).receipts if receipt.command == "seq 1 20000")
    assert receipt.tail.endswith("\n20000\n")
    assert len(receipt.tail) < 7000
    assert Path(receipt.output).read_text() == "".join(f"{n}\n" for n in range(1, 20001))
    target = project.hub_git("rev-parse", "refs/legion/target").strip()
    page = project.ticket(ticket)
    shown = {receipt.command: receipt for receipt in page.receipts}
    assert {command: one.verdict for command, one in shown.items()} == {"seq 1 20000": "green", "sh check.sh": "green"}
    assert len(page.receipts) == 2
    assert shown["sh check.sh"].commit == page.landed == target
    # The commit of a proof was made before, maybe in another second, of the same files.
    trees = project.hub_git("rev-parse", *(f"{one.commit}^{{tree}}" for one in page.receipts)).split()
    assert set(trees) == {project.hub_git("rev-parse", f"{target}^{{tree}}").strip()}


def test_what_a_check_leaves_behind_is_no_part_of_anything(make: Callable[..., Project]):
    look = "! [ -e left.txt ] && ! git log -1 | grep sneaky"
    leave = "echo x > left.txt && git add -A && git commit -qm sneaky"
    project = make(f"[checks.test]\nrun = '{look} && {leave}'\n")
    tickets = [project.dispatch(f"ticket {n}", f"touch {n}.txt") for n in range(2)]
    project.until_settled()
    assert [project.state(ticket) for ticket in tickets] == ["done", "done"]
    assert project.landed("left.txt") is None


def test_a_green_checkpoint_lets_those_behind_it_start(project: Project):
    before, checkpoint, after = project.dispatch_all(
        [
            new("before", "echo 1 > before.txt", key="before"),
            new("all is well", key="gate", checkpoint=True, after_keys=["before"], prove=["test -e before.txt"]),
            new("after", "cp before.txt after.txt", after_keys=["gate"]),
        ]
    )
    project.until_settled()
    assert [project.state(one) for one in (before, checkpoint, after)] == ["done"] * 3
    commands = {receipt.command for receipt in project.ticket(checkpoint).receipts}
    assert "test -e before.txt" in commands


def test_what_comes_after_a_red_checkpoint_waits_and_a_retry_frees_it(make: Callable[..., Project]):
    project = make(f"{CHECK}\n[checkpoints]\nfixes = 0\n")
    checkpoint, after = project.dispatch_all(
        [
            new("is it there", key="gate", checkpoint=True, prove=["test -e wanted.txt"]),
            new("after", "touch b.txt", after_keys=["gate"]),
        ]
    )
    state = project.until_settled()
    assert project.states() == {checkpoint: "failed", after: "queued"}
    assert state.stuck == [after]
    assert project.ticket(checkpoint).ticket.reason == "checks failed on the landed code: `test -e wanted.txt`"
    assert project.ticket(after).ticket.doing == f"held up by {checkpoint}"
    wanted = project.dispatch("wanted", "touch wanted.txt")
    project.until(wanted, "done")
    project.retry(checkpoint)
    project.until_settled()
    assert project.states() == {checkpoint: "done", after: "done", wanted: "done"}


def test_a_landed_ticket_that_nothing_checked_says_so(make: Callable[..., Project]):
    project = make("[agents]\nattempts = 1\n")
    bare = project.dispatch("bare", "touch a.txt")
    proven = project.dispatch("proven", "touch b.txt", prove=["test -e b.txt"])
    project.until_settled()
    line = project.ticket(bare).ticket
    assert (line.state, line.unchecked, line.doing) == ("done", True, "landed unchecked")
    assert project.ticket(proven).ticket.unchecked is False
