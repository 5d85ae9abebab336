"""What was spent is one sum, wherever it is shown: tickets, planners, standing agents and questions are all in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.domain.scheduling.budgets import Budgets, balance
from legion.domain.scheduling.usage import Spending, Usage, UsageBy
from legion.store.board import goals
from legion.store.staff import agents
from legion.store.work import runs, usage
from legion.wire.dispatch import Dispatch, NewTicket
from tests.support.attacks import Attacker, Door, attack
from tests.support.office import Office, office
from tests.support.planner import TWO, Planner
from tests.support.repository import CHECK

DAY = "2026-01-01"


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Office]:
    with office(tmp_path, config=CHECK) as one:
        yield one


def spend(desk: Office, run: int, usd: float) -> None:
    with desk.context.store.write() as tx:
        usage.add(tx, [Spending(run=run, provider="p", model="m", day=DAY, usage=Usage(requests=1, usd=usd))])


@pytest.fixture
def plan(desk: Office) -> int:
    """Everything that costs money has cost some: 0.25 + 0.5 + 1 + 2 + 4 + 8."""
    page = Planner(desk).plan(TWO)
    number = int(page.plan.id.removeprefix("P"))
    first, *_ = Planner(desk).approve(page).tickets.values()
    other = desk.person.dispatch(Dispatch(cwd=desk.cwd, tickets=[NewTicket(title="a", text="x", command="true")]))
    hired = desk.hire("ada", role="leader")
    with desk.context.store.write() as tx:
        planning = runs.start_planning(tx, goals.get(tx, number))
        turn = runs.start_turn(tx, agents.get(tx, hired.id), "prompt")
        started = [runs.start(tx, first, 1), runs.start(tx, other.ids[0], 1)]
        asked = [runs.start_ask(tx, 1, role) for role in ("question", "lesson")]
    for place, run in enumerate((planning, turn, *started, *asked)):
        spend(desk, run.id, 0.25 * 2**place)
    return number


@attack(Attacker.AGENT, Door.MONEY)
@pytest.mark.parametrize("by", list(UsageBy), ids=lambda by: by.value)
def test_every_report_has_the_sum_of_the_main_screen(desk: Office, plan: int, by: UsageBy):
    report = desk.person.usage(desk.cwd, by.value)
    assert report.total.usage.usd == sum(share.usage.usd for share in report.shares) == 15.75
    shown = desk.person.status(desk.cwd, False).usage
    assert shown is not None
    assert shown.usd == 15.75


def test_a_planner_belongs_to_its_epic_and_questions_to_their_role(desk: Office, plan: int):
    epics = {one.key: one.usage.usd for one in desk.person.usage(desk.cwd, "epic").shares}
    assert epics == {f"P{plan}": 0.25 + 1.0, "": 0.5 + 2 + 4 + 8}
    of_epic = desk.person.epic(desk.cwd, f"P{plan}").usage
    assert of_epic is not None
    assert of_epic.usd == 1.25
    roles = {one.key: one.usage.usd for one in desk.person.usage(desk.cwd, "role").shares}
    assert (roles["planner"], roles["question"], roles["lesson"], roles["leader"]) == (0.25, 4.0, 8.0, 0.5)


def test_budgets_count_planners_and_questions(desk: Office, plan: int):
    with desk.context.store.read() as tx:
        spent = usage.spent(tx)
    assert sum(one.usd for one in spent) == 15.75
    left = balance(Budgets(epics={(1, f"P{plan}"): 1.25}, project=15.75), spent, DAY)
    assert [one.scope for one in left.empties(1, f"P{plan}")] == ["project:1", f"epic:1:P{plan}"]
