"""Warm trees are made when a burst of tickets is over, or when it lasts too long."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from legion.jobs.background.housekeeping import tidy
from tests.support.board import Board


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Board]:
    one = Board(tmp_path)
    yield one
    one.close()


def tidied(board: Board, *, patient: bool, later: float = 0.0) -> tuple[bool, int]:
    """Whether nothing is left to do, and how many trees wait."""
    context = replace(board.context, clock=lambda: board.context.clock() + later)
    project = context.project(1)
    return tidy(context, project, patient=patient), project.worktrees.waiting()


@pytest.mark.parametrize("state", ["queued", "working", "landing"])
def test_an_empty_pool_is_left_alone_during_a_burst_and_filled_if_it_lasts(board: Board, state: str):
    board.put(1, state=state)
    assert tidied(board, patient=True) == (False, 0)
    done, trees = tidied(board, patient=False)
    assert done
    assert trees > 0


def test_agents_that_have_worked_for_a_while_are_no_burst(board: Board):
    board.put(1, state="working")
    done, trees = tidied(board, patient=True, later=11)
    assert done
    assert trees > 0
