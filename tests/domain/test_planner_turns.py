"""When a planner starts, waits, and is followed to its end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from legion.domain.rules import Rule
from legion.domain.scheduling.admission import AdmissionState, HoldReason
from legion.domain.scheduling.decide import BoardSnapshot, JobKind, PlanView, ProjectView, decide
from legion.domain.scheduling.job_places import StartJob
from tests.domain.test_turns import agent, serve, ticket

PROJECT = ProjectView(
    id=1, parallel=1, paused=False, trusted=True, baseline_known=True, baseline_red=False, upstream_pending=False
)
START = StartJob(JobKind.PLAN, 3)


def view(**facts) -> PlanView:
    return PlanView(**{"number": 3, "project": 1, "wanted": True} | facts)


def look(*plans: PlanView, project: ProjectView = PROJECT, slots: int = 9, **more) -> BoardSnapshot:
    values = {"ended": {}, "jobs": frozenset(), "tickets": ()} | more
    return BoardSnapshot(projects=(project,), slots=slots, plans=plans, **values)


def test_a_plan_gets_its_planner_in_a_slot_and_not_twice():
    assert decide(look(view()), 0.0).commands == (START,)
    assert decide(look(view(), slots=0), 0.0).commands == ()
    assert decide(look(view(in_a_run=True), jobs=frozenset({(JobKind.PLAN, 3)})), 0.0).commands == ()


def test_a_planner_takes_a_slot_and_none_of_the_projects_own_limit():
    started = look(view(in_a_run=True), jobs=frozenset({(JobKind.PLAN, 3)}), slots=1, tickets=(ticket(5),))
    assert decide(started, 0.0).commands == ()
    both = look(view(waiting_since=5.0), agents=(agent(1, waiting_since=9.0),), tickets=(ticket(5),))
    assert decide(both, 0.0).commands == (StartJob(JobKind.RUN, 5, 15), START, serve(1))


@pytest.mark.parametrize("project", [replace(PROJECT, paused=True), replace(PROJECT, trusted=False)])
def test_no_planner_starts_where_nothing_may_but_one_that_has_started_is_followed(project):
    assert decide(look(view(), project=project), 0.0).commands == ()
    assert decide(look(view(in_a_run=True), project=project), 0.0).commands == (START,)
    assert decide(look(view(wanted=False, in_a_run=True), project=project), 0.0).commands == (START,)


def test_a_planner_that_a_limit_stopped_waits_for_the_reset():
    waiting = look(view(held_until=60.0))
    assert (decide(waiting, 0.0).commands, decide(waiting, 0.0).wake_at) == ((), 60.0)
    assert decide(waiting, 60.0).commands == (START,)


def test_a_spent_budget_holds_a_planner_as_it_holds_a_turn():
    hold = HoldReason(rule=Rule.BUDGET, why="spent")
    held = decide(look(view(), admission=AdmissionState(over_budget={"plan-3": hold})), 0.0)
    assert (held.commands, held.held) == ((), {"plan-3": hold})


def test_a_planner_that_raised_an_error_backs_off():
    backing_off = look(view(), resting={(JobKind.PLAN, 3): 5.0})
    assert (decide(backing_off, 0.0).commands, decide(backing_off, 0.0).wake_at) == ((), 5.0)
