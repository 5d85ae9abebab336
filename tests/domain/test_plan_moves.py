"""The legal moves of a plan, each tried from every state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from legion.domain.errors import BadInput, StateConflict
from legion.domain.plans import plan as plans
from legion.domain.plans.answer import PlanQuestion
from legion.domain.plans.checks import FindingKind, PlanFinding
from legion.domain.plans.draft import PlanDraft, PlanTicket
from legion.domain.plans.plan import ROUNDS, GoalPlan, PlanState, approval
from legion.wire.text import plan_number

DRAFT = PlanDraft(
    tickets=(
        PlanTicket(key="a", title="A"),
        PlanTicket(key="b", title="B", after=("a",)),
        PlanTicket(key="c", title="C"),
    )
)
PLAN = GoalPlan(id=3, project=1, goal="Users can log in.", draft=DRAFT)
WRONG = (PlanFinding(kind=FindingKind.SIZE, ticket="a", text="too large"),)
ASKED = (PlanQuestion(text="Which?", proposals=("x", "y")),)

Move = Callable[[GoalPlan], GoalPlan]
MOVES: dict[str, tuple[Move, dict[str, str]]] = {
    "answered": (lambda plan: plans.answered(plan, DRAFT, (), ()), {"planning": "ready"}),
    "found": (lambda plan: plans.answered(plan, DRAFT, WRONG, ()), {"planning": "planning"}),
    "unusable": (lambda plan: plans.unusable(plan, "nonsense", ()), {"planning": "planning"}),
    "asking": (lambda plan: plans.asking(plan, ASKED), {"planning": "asking"}),
    "resumed": (plans.resumed, {"asking": "planning"}),
    "failed": (lambda plan: plans.failed(plan, "no program"), {"planning": "failed", "asking": "failed"}),
    "held": (lambda plan: plans.held(plan, 9.0, "limit"), {"planning": "planning"}),
    "edited": (
        lambda plan: plans.edited(plan, DRAFT, (), ()),
        dict.fromkeys(("ready", "faulty", "partly", "failed"), "ready"),
    ),
    "rejected": (
        lambda plan: plans.rejected(plan, "smaller", "new"),
        dict.fromkeys(("written", "ready", "faulty", "partly", "failed"), "planning"),
    ),
    "retried": (plans.retried, {"failed": "planning"}),
    "documented": (lambda plan: plans.documented(plan, "new", "done", last=True), {"planning": "planning"}),
    "waits": (lambda plan: plans.documented(replace(plan, stops=True), "new", "", last=True), {"planning": "written"}),
    "agreed": (plans.agreed, {"written": "planning"}),
    "approved": (
        lambda plan: plan if approval(plan, (), ()) else PLAN,
        {"ready": "ready", "faulty": "faulty", "partly": "partly"},
    ),
    "dropped": (
        plans.dropped,
        dict.fromkeys(("planning", "asking", "written", "ready", "faulty", "partly", "failed"), "dropped"),
    ),
}


@pytest.mark.parametrize("state", PlanState)
@pytest.mark.parametrize("name", MOVES)
def test_every_move_from_every_state_is_made_or_refused(name, state):
    move, allowed = MOVES[name]
    before = replace(PLAN, state=state)
    if state.value in allowed:
        assert move(before).state.value == allowed[state.value]
    else:
        with pytest.raises(StateConflict, match="P3"):
            move(before)


def test_findings_go_back_to_the_planner_and_then_to_the_person():
    plan = PLAN
    for number in range(1, ROUNDS):
        plan = plans.answered(plan, DRAFT, WRONG, ())
        assert (plan.state, plan.tries, plan.rounds) == (PlanState.PLANNING, number, number)
    plan = plans.answered(plan, DRAFT, WRONG, ())
    assert (plan.state, plan.findings, plan.reason) == (PlanState.FAULTY, WRONG, "1 finding after 3 rounds")
    again = plans.rejected(plan, "smaller", "new")
    assert (again.state, again.tries, again.findings, again.guidance) == (PlanState.PLANNING, 0, (), "smaller")


def test_nonsense_is_repeated_and_then_the_plan_fails_unless_it_has_a_draft():
    fresh = kept = replace(PLAN, draft=None)
    kept = plans.answered(kept, DRAFT, WRONG, ())
    for _ in range(ROUNDS - 1):
        fresh = plans.unusable(fresh, "nonsense", ())
        kept = plans.unusable(kept, "nonsense", ())
    assert fresh.state is PlanState.PLANNING
    assert plans.unusable(fresh, "nonsense", ()).state is PlanState.FAILED
    assert (kept.state, kept.draft) == (PlanState.FAULTY, DRAFT)


@pytest.mark.parametrize(("budget", "spent", "then"), [(None, 9.0, None), (2.0, 1.0, 2.0), (2.0, 2.5, 4.5)])
def test_a_retry_gives_a_spent_budget_once_more(budget, spent, then):
    assert plans.retried(replace(PLAN, state=PlanState.FAILED, budget=budget), spent).budget == then


def test_a_planner_asks_once():
    asked = plans.asking(replace(PLAN, may_ask=True), ASKED)
    assert (asked.asked, asked.may_ask) == (("plan:3:1",), False)


def test_a_limit_ends_with_the_next_answer():
    held = plans.held(PLAN, 9.0, "limit")
    assert held.held_until == 9.0
    assert plans.answered(held, DRAFT, (), ()).held_until is None


READY = replace(PLAN, state=PlanState.READY)


@pytest.mark.parametrize(
    ("keys", "approved", "wanted"),
    [((), (), ("a", "b", "c")), (("c", "a"), (), ("a", "c")), (("b",), ("a",), ("b",)), ((), ("a", "b"), ("c",))],
)
def test_what_is_approved_now_is_all_that_is_left_or_a_choice(keys, approved, wanted):
    assert approval(READY, keys, approved) == wanted


@pytest.mark.parametrize(
    ("keys", "approved", "error", "message"),
    [
        (("x",), (), BadInput, "P3 has no ticket 'x'. Its keys: a, b, c."),
        (("b",), (), BadInput, "Ticket b comes after a, which is not approved. Run `legion approve P3 a b`."),
        (("a",), ("a",), StateConflict, "Ticket a of P3 is approved already"),
        ((), ("a", "b", "c"), StateConflict, "Every ticket of P3 is approved already."),
    ],
)
def test_a_choice_that_cannot_be_is_refused(keys, approved, error, message):
    with pytest.raises(error) as refused:
        approval(READY, keys, approved)
    assert message in refused.value.message


@pytest.mark.parametrize("state", [one for one in PlanState if one not in plans.DECIDABLE])
def test_nothing_is_approved_in_any_other_state(state):
    with pytest.raises(StateConflict, match="has nothing to approve"):
        approval(replace(PLAN, state=state), (), ())


def test_a_part_now_and_the_rest_later():
    partly = plans.approved_more(READY, {"a"})
    assert partly.state is PlanState.PARTLY
    assert plans.approved_more(partly, {"a", "b", "c"}).state is PlanState.APPROVED
    again = plans.answered(plans.rejected(partly, "more", "new"), DRAFT, (), {"a"})
    assert again.state is PlanState.PARTLY
    assert (
        plans.answered(plans.rejected(partly, "no more", "new"), DRAFT, (), {"a", "b", "c"}).state is PlanState.APPROVED
    )


@pytest.mark.parametrize(
    ("word", "number"),
    [("P3", 3), ("p12", 12), ("3", None), ("#3", None), ("P0", None), ("P", None), ("P3x", None), ("pia", None)],
)
def test_the_name_of_a_plan_is_never_a_tickets_number(word, number):
    assert plan_number(word) == number
    assert number is None or plan_number(plans.plan_name(number)) == number
