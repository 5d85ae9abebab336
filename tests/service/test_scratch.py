"""An agent that is hired outside of every project works in Legion's own repository, and the person is told."""

from __future__ import annotations

from pathlib import Path

from legion.wire.agents import HireAgent
from tests.support.board import Board


def test_hire_in_a_folder_of_no_project_says_where_the_agent_works(tmp_path: Path):
    board = Board(tmp_path)
    elsewhere = tmp_path / "notes"
    elsewhere.mkdir()
    first = board.service.hire(HireAgent(task="Look around.", name="tess", cwd=str(elsewhere)))
    again = board.service.hire(HireAgent(task="Look around.", name="bob", cwd=str(elsewhere)))
    (said,) = [note for note in first.notes if "is in no project" in note]
    root = tmp_path / "data/own/scratch"
    assert f"works in Legion's own folder {root} and does not see {elsewhere}" in said
    assert first.id != again.id
    lines = {one.name: one for one in board.service.projects().projects}
    assert {*lines} == {"shop", "scratch"}
    assert (lines["scratch"].root, lines["scratch"].trusted) == (str(root), True)
    assert list(elsewhere.iterdir()) == []
    inside = board.service.hire(HireAgent(task="Look around.", name="eve", cwd=board.cwd))
    assert not [note for note in inside.notes if "is in no project" in note]
    board.close()
