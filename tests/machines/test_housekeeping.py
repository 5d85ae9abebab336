"""What a machine deletes by itself: only what is settled and old, and worktrees only into the trash."""

from __future__ import annotations

import os
from pathlib import Path

from legion.machine.housekeeping import KEEP_RUNS, KEEP_TREES, MachineHousekeeper
from legion.machine.work import REPORTED
from tests.support.board import Board

NOW = 2_000_000_000.0


def aged(file: Path, seconds: float) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("{}")
    os.utime(file, (NOW - seconds, NOW - seconds))
    return file


def test_only_old_settled_runs_and_unused_worktrees_go(tmp_path: Path):
    board = Board(tmp_path)
    runs = board.data.runs
    old = aged(runs / "ticket-1-run-1" / REPORTED, KEEP_RUNS + 60)
    young = aged(runs / "ticket-2-run-2" / REPORTED, KEEP_RUNS - 60)
    open_ = aged(runs / "ticket-3-run-3" / "job.json", KEEP_RUNS * 9)
    project = board.context.project(1)
    for name, seconds in (("ticket-1", KEEP_TREES + 60), ("ticket-2", KEEP_TREES - 60), ("ticket-3", KEEP_TREES + 60)):
        project.worktrees.acquire(name, board.base, f"legion/{name}")
        aged(project.folder / "worktrees" / f"{name}.run", seconds)
    MachineHousekeeper(board.context, lambda: {"ticket-3"}).tidy(NOW)
    assert not old.parent.exists()
    assert young.exists()
    assert open_.exists()
    assert project.worktrees.names() == ("ticket-2", "ticket-3")
    keeper = MachineHousekeeper(board.context, set)
    keeper.keep_warm()
    assert project.worktrees.waiting() > 0
    board.close()
