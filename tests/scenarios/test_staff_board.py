"""Standing agents that work from the board, and plans that wait for approval."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from legion.wire.agents import PlanVerdict
from tests.support.models import Company, company
from tests.support.staff import Staff, bash, tool

CLAIM, SUBMIT = f"call = {tool('legion-claim')}", f"call = {tool('legion-claim', submit=True)}"


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    with company(tmp_path_factory.mktemp("board"), stand_in=True) as one:
        yield one


def work(staff: Staff, name: str, command: str, *, submit: str = SUBMIT, claim: str = CLAIM) -> None:
    """A ticket's script: the agent does this, submits it, and claims the next one when it is told that it was taken."""
    staff.script(name, bash(command), submit, 'say = "Submitted."', claim, 'say = "On I go."')


def test_two_agents_share_the_board_until_none_is_left(here: Company):
    staff = Staff(here)
    staff.script("worker", CLAIM, 'say = "Claimed."')
    names = ("apple", "berry", "cherry")
    # The commands do what the tool does.
    work(
        staff, "apple", "echo apple > apple.txt", submit=bash("legion agents submit"), claim=bash("legion agents claim")
    )
    for name in names[1:]:
        work(staff, name, f"echo {name} > {name}.txt")
    # The check of the project is red for as long as this word is anywhere.
    work(staff, "fig", "if test -e fig.txt; then echo fig > fig.txt; else echo BROKEN > fig.txt; fi")
    tickets = [
        here.project.dispatch(f"play {name}", "", text=f"rehearsal: {name}", driver="standing")
        for name in (*names, "fig")
    ]
    assert set(here.project.states().values()) == {"queued"}
    for name in ("ann", "bob"):
        staff.hire("worker", name=name)
    here.project.until_settled(*tickets, patience=120)
    staff.until_idle()
    assert {here.project.state(ticket) for ticket in tickets} == {"done"}
    for name in (*names, "fig"):
        assert here.project.landed(f"{name}.txt") == f"{name}\n"
    claimed = [one for name in ("ann", "bob") for one in staff.mail_of(name) if one.kind == "task" and one.about]
    assert {one.recipient_name for one in claimed} == {"ann", "bob"}
    assert len([one for one in claimed if one.about == str(tickets[0])]) == 1
    assert [here.project.ticket(ticket).ticket.attempt for ticket in tickets] == [1, 1, 1, 2]
    staff.check()
    for name in ("ann", "bob"):
        staff.fire(name)


def test_a_fired_agent_gives_its_ticket_back(here: Company):
    staff = Staff(here)
    staff.script("leaver", CLAIM, 'say = "Claimed."', 'say = "I look at it."')
    ticket = here.project.dispatch("play grape", "", text="rehearsal: grape", driver="standing")
    staff.script("grape", 'say = "I do not know."')
    staff.hire("leaver")
    here.project.until(ticket, "working")
    staff.until_idle("leaver")
    assert "held by leaver" in here.told("status")
    staff.fire("leaver")
    assert here.project.state(ticket) == "queued"
    here.project.stop(ticket)


def test_until_its_plan_is_approved_an_agent_only_reads(here: Company):
    staff = Staff(here)
    plan = "echo '{}' > /dev/null"
    staff.script("planner", bash(plan), 'say = "I cannot."', bash("echo done > plan.txt"), 'say = "Now I can."')
    staff.hire("planner", plan=True)
    staff.until_idle("planner")
    calls = [event.facts for event in staff.journal(len(staff.lines())) if event.kind == "returned"]
    assert [facts["failed"] for facts in calls] == [True], "there is no Bash yet"
    refused = here.cli("reject", "planner", " ")
    assert refused.returncode == 2
    here.squad.client.decide_plan(PlanVerdict(agent="planner", approve=True))
    staff.until_idle("planner")
    assert (here.project.worktrees / f"agent-{len(staff.lines())}" / "plan.txt").read_text() == "done\n"
    assert here.cli("approve", "planner").returncode == 5
    staff.fire("planner")
