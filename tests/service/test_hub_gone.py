"""The hub of a project was moved away: requests say which folder is gone, and doctor says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.git.core.errors import FolderGone
from legion.wire.projects import AddProject
from tests.support.board import Board


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Board]:
    one = Board(tmp_path)
    yield one
    one.close()


def test_a_hub_that_is_gone_is_a_sentence_and_a_finding(board: Board):
    hub = board.context.hub(1)
    before = {found.name: found.ok for found in board.service.doctor(board.cwd).findings}
    assert before["hub"]
    hub.path.rename(hub.path.with_name("away"))
    (finding,) = [found for found in board.service.doctor(board.cwd).findings if found.name == "hub"]
    assert not finding.ok
    assert str(hub.path) in finding.detail
    assert "`legion init`" in finding.advice
    assert board.service.status(board.cwd).schema == "legion.status/1"
    with pytest.raises(FolderGone, match=r"hub\.git is gone; bring it back"):
        board.service.preview_collect(board.cwd)
    for ask in (hub.target, hub.tidy, lambda: hub.files("HEAD"), lambda: hub.tree_of("HEAD")):
        with pytest.raises(FolderGone):
            ask()
    hub.path.with_name("away").rename(hub.path)
    assert hub.target() is not None


def test_init_makes_a_new_hub_where_the_old_one_is_lost(board: Board):
    hub = board.context.hub(1)
    hub.path.rename(hub.path.with_name("away"))
    board.service.add_project(AddProject(path=board.cwd))
    assert hub.target() == board.base
