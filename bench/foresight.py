"""Thirty changes in work on 5,000 files, merged with each other: seconds for a round, and what it leaves in the hub."""

from __future__ import annotations

import os
import time
from pathlib import Path

from bench import ground
from bench.report import ROUNDS, Report
from legion.git.hub.repository import Hub
from legion.git.merge.prediction import OpenChange, Prediction
from legion.git.trees.worktrees import Worktrees
from tests.support.live_trees import live

_TREES = 30
_FILES = 5000


def run(folder: Path, report: Report) -> None:
    repository = ground.repository(folder / "repo", _FILES, "")
    hub = Hub.create(repository.root / ".git", folder / "hub.git")
    target = hub.start_target(hub.fetch_person(repository.root / ".git", "main"))
    trees = Worktrees(hub, folder / "trees", folder / "trash", folder / "side")
    places = {number: trees.acquire(str(number), target, f"legion/{number}") for number in range(1, _TREES + 1)}
    changes = [
        OpenChange(id=number, base=target, tree=live(hub, place), index=trees.index(str(number)))
        for number, place in places.items()
    ]
    before = _count(hub.objects)
    for name, shared in (("each its own files", False), ("all in one file", True)):
        prediction = Prediction(hub, folder / "foresight")
        prediction.forget()
        _work(places, 0, shared)
        report.value(f"first round, {name}", _round(prediction, changes, target), "s")
        rounds = []
        for step in range(1, ROUNDS + 1):
            _work(places, step, shared)
            rounds.append(_round(prediction, changes, target))
        report.value(f"a round after every tree has changed, {name}", sorted(rounds)[ROUNDS // 2], "s", aim=1.0)
        report.value(f"a round in which nothing has changed, {name}", _round(prediction, changes, target), "s", aim=1.0)
    report.value("new objects in the hub", float(_count(hub.objects) - before), "objects", aim=0.0)


def _work(places: dict[int, Path], step: int, shared: bool) -> None:
    """Every agent writes three files: its own, or one that all of them write."""
    for number, place in places.items():
        for part in range(3):
            file = place / f"part{number:04d}" / f"file{number * 50 + part:05d}.py"
            file.write_text(f"# step {step} of {number}\n" + file.read_text())
        if shared:
            file = place / "part0000" / "file00000.py"
            lines = file.read_text().splitlines(keepends=True)
            lines[number % 10] = f"# step {step} of {number}\n"
            file.write_text("".join(lines))


def _round(prediction: Prediction, changes: list[OpenChange], target: str) -> float:
    began = time.monotonic()
    prediction.look(changes, target)
    return time.monotonic() - began


def _count(folder: Path) -> int:
    return sum(len(names) for _, _, names in os.walk(folder))
