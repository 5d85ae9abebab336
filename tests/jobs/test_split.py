"""A ticket that failed because it is too large gets a plan that splits it, once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from legion.domain.plans.plan import GoalPlan, PlanSource
from legion.domain.tickets.ticket import Cause, Fail, Step, TryAgain
from legion.jobs.attempts import escalation
from legion.store.board import goals
from tests.support.board import Board


@pytest.fixture(scope="module")
def one_board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    one = Board(tmp_path_factory.mktemp("split"))
    yield one
    one.close()


@pytest.fixture
def board(one_board: Board) -> Board:
    one_board.reset()
    return one_board


def plans_after(board: Board, number: int, step: Step, **spec: Any) -> list[GoalPlan]:
    ticket = board.put(number, state="working", **{"command": "", **spec})
    with board.store.write() as tx:
        escalation.apply_step(board.context, tx, ticket, step)
        return [plan for plan in goals.of_project(tx, 1) if plan.about == number]


def test_a_last_failure_for_size_proposes_a_split_and_others_do_not(board: Board):
    too_large = Fail("the agent gave up: too large", cause=Cause.SIZE)
    (plan,) = plans_after(board, 1, too_large, title="Rewrite it", epic="big")
    assert (plan.source, plan.about, plan.epic, plan.goal) == (PlanSource.SPLIT, 1, "big", "Rewrite it\n\nMake it so.")
    assert plans_after(board, 2, Fail("the agent gave up: no idea")) == []
    assert plans_after(board, 3, TryAgain("its time was up", "", cause=Cause.SIZE)) == []
    assert plans_after(board, 4, too_large, command="sh agent.sh") == []
    assert plans_after(board, 5, too_large, dispatcher="ada") == []


def test_a_ticket_that_fails_for_size_again_gets_no_second_plan(board: Board):
    too_large = Fail("the agent gave up: too large", cause=Cause.SIZE)
    assert len(plans_after(board, 1, too_large)) == 1
    board.service.retry(1)
    assert len(plans_after(board, 1, too_large)) == 1
