"""Tickets whose agents may only read until their plans are approved."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from legion.domain.runs import Outcome
from legion.jobs.agent import plan_approval
from legion.runner.journal import Journal
from legion.store.board import plan_approvals
from legion.store.work import runs
from legion.wire.agents import FireAgent, PlanVerdict
from legion.wire.dispatch import Dispatch, NewTicket
from legion.wire.errors import BadInput, NotAllowed, StateConflict
from tests.support.models import Company, company
from tests.support.office import Office, office
from tests.support.staff import Staff, bash, tool


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    with company(tmp_path_factory.mktemp("plans"), stand_in=True) as one:
        yield one


def write(name: str) -> str:
    return f'call = {{tool = "Write", input = {{file_path = "{{cwd}}/{name}", content = "{name}"}}}}'


def returned(here: Company, ticket: int) -> list[bool]:
    """Of every call of a tool, whether it failed."""
    return [event.facts["failed"] is True for event in here.journal(ticket) if event.kind == "returned"]


def test_until_its_plan_is_approved_the_agent_of_a_ticket_only_reads(here: Company):
    staff = Staff(here)
    rejected = 'expect = "Your plan was rejected[\\\\s\\\\S]*Not b[\\\\s\\\\S]*only read"\nsay = "I write c."'
    approved = f'expect = "Your plan is approved"\n{write("c.txt")}'
    steps = (bash("echo x > a.txt"), write("a.txt"), 'say = "I write b."', rejected, approved, 'say = "Done."')
    staff.script("careful", *steps)
    # Only the real program shows that it keeps to its mode.
    with here.using(None):
        ticket = here.dispatch("careful", plan_first=True)
        page = here.project.until(ticket, "parked")
    assert returned(here, ticket) == [True, True]
    assert (page.planning, page.proposal, page.ticket.attempt) == ("proposed", "I write b.", 1)
    assert not (here.project.worktree(ticket) / "a.txt").exists()
    assert "waits for a decision about its plan" in here.cli("resume", str(ticket)).stderr
    assert here.cli("reject", str(ticket), " ").returncode == 2

    # Whatever dies while it waits, it waits.
    here.squad.kill()
    here.start()
    (question,) = here.squad.client.inbox().questions
    assert (question.kind, question.ticket, question.facts["plan"]) == ("plan", ticket, "I write b.")
    here.told("reject", str(ticket), "Not b, please.")
    here.project.until_true(lambda: here.project.ticket(ticket).proposal == "I write c.")
    here.project.until(ticket, "parked")
    (question,) = here.squad.client.inbox().questions
    here.told("answer", str(question.id), "approve")
    done = here.project.until(ticket, "done")
    assert (done.ticket.attempt, done.planning, len(done.runs)) == (1, "approved", 3)
    assert here.project.landed("c.txt") == "c.txt"
    assert here.squad.client.inbox().questions == []
    assert here.cli("approve", str(ticket)).returncode != 0


def test_the_agent_that_dispatched_a_ticket_decides_about_its_plan(here: Company):
    staff = Staff(here)
    spec = tool("legion-dispatch", title="planned", text="rehearsal: planned", plan_first=True)
    staff.script("planned", 'say = "I write d."', write("d.txt"), 'say = "Done."')
    next_ticket = 1 + max(here.project.states(), default=0)
    answer = tool("legion-plan", agent=str(next_ticket), approve=True)
    yes = f'expect = "proposes a plan[\\\\s\\\\S]*I write d."\ncall = {answer}'
    staff.script("leader", f"call = {spec}", 'say = "Dispatched."', yes, 'say = "Approved."')
    staff.hire("leader")
    here.project.until_true(lambda: "Approved." in staff.results("leader"))
    assert here.squad.client.inbox().questions == []
    assert here.project.until(next_ticket, "done").planning == "approved"
    assert here.project.landed("d.txt") == "d.txt"
    staff.check()
    staff.fire("leader")


def test_who_claims_such_a_ticket_only_reads_until_its_plan_is_approved(here: Company):
    staff = Staff(here)
    staff.script("taker", bash("legion agents claim"), 'say = "Claimed."')
    propose = f"call = {tool('legion-plan', text='I write e.')}"
    steps = (bash("echo x > x.txt"), propose, 'say = "Proposed."', write("e.txt"), bash("legion agents submit"))
    staff.script("held", *steps, 'say = "Submitted."')
    ticket = here.dispatch_standing("held", plan_first=True)
    staff.hire("taker")
    here.project.until_true(lambda: "Proposed." in staff.results("taker"))
    staff.until_idle("taker")
    number = len(staff.lines())
    calls = [event.facts["failed"] for event in staff.journal(number) if event.kind == "returned"]
    assert calls == [False, True, False], "it claims, has no Bash any more, and proposes"
    assert here.project.ticket(ticket).planning == "proposed"
    here.told("approve", "taker")
    assert here.project.until(ticket, "done").planning == "approved"
    assert here.project.landed("e.txt") == "e.txt"
    assert here.project.landed("x.txt") is None
    staff.until_idle("taker")
    staff.check()
    staff.fire("taker")


@pytest.fixture
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    with office(tmp_path_factory.mktemp("verdicts")) as one:
        yield one


def test_only_who_dispatched_it_and_those_above_decide_and_when_they_are_gone_the_person(desk: Office):
    boss, stranger = desk.hire("boss"), desk.hire("stranger")
    middle = desk.hire("middle", boss)
    below, peer = desk.hire("below", middle), desk.hire("peer", boss)
    numbers = [middle.use("legion-dispatch", title="t", text="x", plan_first=True).data["ticket"] for _ in range(2)]
    for number in numbers:
        with pytest.raises(StateConflict, match="has no plan that waits for approval"):
            middle.legion.decide_plan(PlanVerdict(agent=str(number), approve=True))
        desk.propose(number, "I do this.")
    for who in (stranger, below, peer):
        with pytest.raises(NotAllowed, match="not dispatched by you"):
            who.legion.decide_plan(PlanVerdict(agent=str(numbers[0]), approve=True))
    with pytest.raises(BadInput, match="needs a reason"):
        boss.use("legion-plan", agent=str(numbers[0]), approve=False)
    first = boss.use("legion-plan", "once", agent=str(numbers[0]), approve=True)
    assert boss.use("legion-plan", "once", agent=str(numbers[0]), approve=True) == first
    assert desk.person.ticket(numbers[0]).ticket.state == "queued"
    assert desk.person.inbox().questions == []
    desk.person.fire(FireAgent(id="middle"))
    assert [one.ticket for one in desk.person.inbox().questions] == [numbers[1]]


def test_the_word_about_a_plan_is_said_until_the_model_has_answered_to_it(desk: Office):
    new = NewTicket(title="t", text="x", driver="claude", plan_first=True)
    number = desk.person.dispatch(Dispatch(cwd=desk.cwd, tickets=[new])).ids[0]
    desk.propose(number, "I do this.")
    desk.person.decide_plan(PlanVerdict(agent=str(number), approve=False, why="Do that."))

    def said_in_the_next_run() -> bool:
        """And that run is lost."""
        with desk.context.store.write() as tx:
            run = runs.start(tx, number, 1)
            plan = plan_approvals.of_ticket(tx, number)
        text = plan_approval.with_plan(desk.context, plan, run, "Go on.", resumes=True)
        assert "only read for now" in text
        folder = desk.context.data.runs / run.name
        folder.mkdir(parents=True)
        if answers:
            Journal(folder, lambda: None).append("said", text="Well.")
        with desk.context.store.write() as tx:
            runs.end(tx, run.id, Outcome.LOST)
        return "Do that." in text

    answers = False
    assert [said_in_the_next_run() for _ in range(2)] == [True, True]
    answers = True
    assert [said_in_the_next_run() for _ in range(2)] == [True, False]


@pytest.mark.parametrize("spec", [{"checkpoint": True}, {"command": "true"}])
def test_where_a_plan_first_would_have_no_effect_it_is_refused(desk: Office, spec):
    ticket = NewTicket(title="t", plan_first=True, **spec)
    with pytest.raises(BadInput, match="Remove --plan-first"):
        desk.person.dispatch(Dispatch(cwd=desk.cwd, tickets=[ticket]))
