"""Plans in the store: moves by version, rounds, the tickets that keys became, and what earlier tickets took."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy.exc import IntegrityError

from legion.domain.errors import NotFound, StateConflict
from legion.domain.plans import plan as plans
from legion.domain.plans.answer import PlanQuestion
from legion.domain.plans.checks import FindingKind, PlanFinding
from legion.domain.plans.draft import PlanDraft, PlanTicket
from legion.domain.plans.plan import GoalPlan, PlanAuthor, PlanEstimate, PlanState
from legion.domain.questions import QuestionKind
from legion.domain.runs import Outcome
from legion.domain.scheduling.usage import Spending, Usage
from legion.store import events
from legion.store.board import goals, questions, tickets
from legion.store.database.transactions import Store
from legion.store.work import runs, usage
from tests.store.making import add_project, add_ticket, land

DRAFT = PlanDraft(
    tickets=(PlanTicket(key="a", title="A"), PlanTicket(key="b", title="B", after=("a",))), summary="Two."
)
WRONG = (PlanFinding(kind=FindingKind.FILE, ticket="a", text="x does not exist"),)
NEW = GoalPlan(id=0, project=1, goal="Users can log in.", budget=0.5, may_ask=True)


@pytest.fixture
def store(migrated_url):
    found = Store(migrated_url)
    with found.write() as tx:
        add_project(tx)
    yield found
    found.close()


def test_a_plan_is_read_as_it_was_written_and_moves_once_per_version(store):
    with store.write() as tx:
        first = goals.create(tx, NEW)
        assert (first.id, first.name, first.version) == (1, "P1", 1)
        moved = goals.save(tx, first, plans.answered(first, DRAFT, WRONG, ()))
        goals.record_round(tx, moved, PlanAuthor.PLANNER, findings=WRONG, run=7)
    with store.read() as tx:
        assert goals.get(tx, 1) == moved
        assert goals.of_project(tx, 1) == (moved,)
        (round,) = goals.rounds(tx, 1)
        assert (round.number, round.author, round.usable, round.findings) == (1, PlanAuthor.PLANNER, True, WRONG)
        assert [event.kind.value for event in events.after(tx, 0)][-2:] == ["plan.created", "plan.moved"]
    with pytest.raises(StateConflict, match="P1 changed meanwhile"), store.write() as tx:
        goals.save(tx, first, plans.dropped(first))
    with pytest.raises(NotFound, match="There is no plan P2"), store.read() as tx:
        goals.get(tx, 2)


def test_a_key_becomes_a_ticket_once(store):
    with store.write() as tx:
        goals.create(tx, NEW)
        first, second = add_ticket(tx), add_ticket(tx)
        goals.dispatch(tx, 1, {"a": first.id}, PlanEstimate(usd_each=0.5, seconds_each=30))
    for again in ({"a": second.id}, {"b": first.id}):
        with pytest.raises(IntegrityError), store.write() as tx:
            goals.dispatch(tx, 1, again, PlanEstimate())
    with store.read() as tx:
        assert goals.dispatched(tx, 1) == {"a": first.id}
        assert goals.origin_of(tx, first.id) == (1, "a")
        assert goals.origin_of(tx, second.id) is None


def test_a_plan_is_planned_until_it_asks_and_again_when_its_questions_are_settled(store):
    with store.write() as tx:
        plan = goals.create(tx, NEW)
        assert goals.being_planned(tx) == (plan,)
        asked = goals.save(tx, plan, plans.asking(plan, (PlanQuestion(text="?", proposals=("x", "y")),) * 2))
        for key in asked.asked:
            questions.ask(tx, key=key, kind=QuestionKind.GOAL, project=1, words="?", deadline=9e9, choices=("x",))
        assert goals.being_planned(tx) == ()
        questions.settle(tx, 1, "x")
        assert goals.being_planned(tx) == ()
        questions.settle(tx, 2, "x")
        assert goals.being_planned(tx) == (asked,)
        goals.save(tx, asked, plans.dropped(asked))
        assert goals.being_planned(tx) == ()


def test_plans_that_wait_for_the_person_are_counted(store):
    with store.write() as tx:
        for state in PlanState:
            goals.create(tx, replace(NEW, state=state))
        assert goals.undecided(tx) == goals.undecided(tx, 1)
        wait = {PlanState.WRITTEN, PlanState.READY, PlanState.FAULTY}
        assert {one.state for one in goals.undecided(tx)} == wait
        assert {one.state for one in goals.undecided(tx, failed=True)} == wait | {PlanState.FAILED}
        assert goals.undecided(tx, 2) == ()


def test_what_landed_tickets_took_is_the_base_of_estimates(store):
    with store.write() as tx:
        goals.create(tx, NEW)
        planned, plain, open_, checkpoint = (add_ticket(tx, checkpoint=n == 3) for n in range(4))
        for ticket in (planned, plain, open_):
            run = runs.start(tx, ticket.id, 1)
            spent = Spending(run=run.id, provider="p", model="m", day="2026-01-01", usage=Usage(requests=1, usd=0.25))
            usage.add(tx, [spent])
            runs.end(tx, run.id, Outcome.FINISHED)
        goals.dispatch(tx, 1, {"a": planned.id}, PlanEstimate(usd_each=0.5, seconds_each=30))
        goals.dispatch(tx, 1, {"b": plain.id}, PlanEstimate())
        for ticket in (planned, plain):
            land(tx, ticket.id)
        assert tickets.get(tx, open_.id).landed is None
        assert [one.usd for one in goals.landed(tx, 1)] == [0.25, 0.25]
        (past,) = goals.past_estimates(tx, 1)
        assert (past.usd, past.seconds, past.took.usd) == (0.5, 30, 0.25)
        assert goals.landed(tx, 2) == ()
    assert checkpoint.spec.checkpoint


def test_a_lost_planner_is_the_next_generation(store):
    with store.write() as tx:
        plan = goals.create(tx, NEW)
        first = runs.start_planning(tx, plan)
        runs.end(tx, first.id, Outcome.LOST)
        second = runs.start_planning(tx, plan)
        assert (first.seat, first.name, second.generation) == ("plan-1", f"plan-1-run-{first.id}", 2)
        runs.end(tx, second.id, Outcome.FINISHED)
        assert runs.start_planning(tx, plan).generation == 1
        assert [run.id for run in runs.of_seat(tx, second)] == [first.id, second.id, second.id + 1]
