"""Landing twenty ready changes with a check of two seconds, counted in check times."""

from __future__ import annotations

import random
import time
from pathlib import Path

from bench import ground
from bench.report import ROUNDS, Report
from tests.support.legion import Project, new, squad

_CHECK = 2.0
_CHANGES = 20


def run(folder: Path, report: Report) -> None:
    for name, bad, slots, aim in (
        ("all good", None, 1, 3.0),
        ("one bad, one slot", 13, 1, 7.0),
        ("one bad, four slots", 13, 4, 4.0),
    ):
        times = [_ready(folder / f"{name.replace(' ', '-')}-{n}", bad, slots) for n in range(ROUNDS)]
        report.value(f"20 ready changes, {name}", sorted(times)[len(times) // 2] / _CHECK, "check times", aim=aim)
    arrivals = _arrivals(folder / "arrivals")
    report.value("20 changes arriving within 20 s, after the last", arrivals / _CHECK, "check times", aim=3.0)


def _config(slots: int) -> str:
    return (
        f'[checks.test]\nrun = "sleep {_CHECK:g}; sh check.sh"\n'
        f"[agents]\nparallel = {_CHANGES}\nattempts = 1\n[landing]\nchecks_at_once = {slots}\n"
    )


def _ready(folder: Path, bad: int | None, slots: int) -> float:
    """The changes are held back by a gate, so that all are ready at once. Seconds from there to the last landing."""
    gate = folder / "gate"
    gate.mkdir(parents=True)
    repository = ground.repository(folder / "repo", 200, _config(slots))
    with squad(folder, settings=f'[sandbox]\nread = ["{gate}"]\n') as one:
        project = one.adopt(repository)
        project.until_settled(project.dispatch("baseline", "echo > baseline.txt"))
        wait = f"while [ ! -e {gate}/open ]; do sleep 0.02; done"
        agents = [f"{wait}; echo {'BROKEN' if n == bad else n} > change{n}.txt" for n in range(_CHANGES)]
        ids = project.dispatch_all([new(f"change {n}", agent) for n, agent in enumerate(agents)])
        for ticket in ids:
            project.until(ticket, "working")
        (gate / "open").touch()
        project.until_settled(patience=300)
        return _last_landing(project, ids) - max(project.ticket(ticket).runs[-1].ended_at or 0.0 for ticket in ids)


def _arrivals(folder: Path) -> float:
    folder.mkdir(parents=True)
    repository = ground.repository(folder / "repo", 200, _config(2))
    chance = random.Random(7)
    with squad(folder) as one:
        project = one.adopt(repository)
        ids = project.dispatch_all(
            [
                new(f"change {n}", f"sleep {chance.uniform(0, 20):.2f}; echo {n} > change{n}.txt")
                for n in range(_CHANGES)
            ]
        )
        project.until_settled(patience=300)
        return _last_landing(project, ids) - max(project.ticket(ticket).runs[-1].ended_at or 0.0 for ticket in ids)


def _last_landing(project: Project, ids: list[int]) -> float:
    landed = [project.ticket(ticket).ticket for ticket in ids]
    return max((line.moved_at for line in landed if line.state == "done"), default=time.time())
