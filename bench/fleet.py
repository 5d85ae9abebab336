"""Real machines as processes: how much sooner four of them finish a board than one, and how late a run starts there.

The agents only wait, as agents do for their model. The head and all machines share the cores of this host, so an agent
waits long enough for its ticket's own work to be small; LEGION_BENCH_NAP sets the seconds, LEGION_BENCH_TICKETS the
number of tickets.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from statistics import median

from bench.report import ROUNDS, Report, say
from legion.git.hub.repository import Hub
from tests.machines.workers import MachineHouse, machine_house
from tests.support.legion import PLAIN, Project, new
from tests.support.looking import until_seen
from tests.support.repository import Repository

_TICKETS = int(os.environ.get("LEGION_BENCH_TICKETS", "120"))
_NAP = float(os.environ.get("LEGION_BENCH_NAP", "40"))
_MACHINES = 4
_SLOTS = max(1, _TICKETS // (3 * _MACHINES))
"""Four machines need three rounds, one needs twelve."""
_CONFIG = "[agents]\nparallel = 64\n"
_STARTS = 2 * ROUNDS


def run(folder: Path, report: Report, postgres: Callable[[], AbstractContextManager[str]]) -> None:
    """`postgres` starts a server of its own and gives its URL."""
    say(f"{_TICKETS} tickets whose agents wait {_NAP:g} s, on machines with {_SLOTS} slots each")
    with postgres() as url:
        one = _finish(folder / "one", url, 1, report)
    with postgres() as url:
        four = _finish(folder / "four", url, _MACHINES, report)
    report.value(f"{_MACHINES} machines against one, share of the time", four / one, "x", aim=1 / 3.5)


def _finish(folder: Path, url: str, count: int, report: Report) -> float:
    """Seconds until all tickets have landed."""
    with machine_house(folder, lease=90.0, database=url, launch=PLAIN) as house:
        for number in range(count):
            house.worker(f"m{number}", labels=["far"], slots=_SLOTS)
        project = house.head.adopt(Repository(folder / "board", _CONFIG))
        _warm(project, count)
        began = time.monotonic()
        tickets = project.dispatch_all(
            [new(f"t{n}", f"sleep {_NAP}; echo {n} > {n}.txt", on=["far"]) for n in range(_TICKETS)]
        )
        project.until_settled(*tickets, patience=60 + _TICKETS * _NAP)
        seconds = time.monotonic() - began
        assert {project.state(one) for one in tickets} == {"done"}
        report.value(f"{_TICKETS} tickets on {count} machine{'s' if count > 1 else ''}", seconds, "s")
        if count > 1:
            _starts(house, project, report)
    return seconds


def _warm(project: Project, count: int) -> None:
    """Each machine has the code."""
    tickets = project.dispatch_all([new(f"warm {n}", f"echo {n} > warm-{n}.txt", on=[f"m{n}"]) for n in range(count)])
    project.until_settled(*tickets)


def _until_warm(house: MachineHouse, project: Project) -> None:
    """Until the machine has fetched what landed last, as it does by itself, and its warm trees show that."""
    mirrors = (house.workers["m0"].data / "projects").glob("*/hub.git")
    mirror, hub = Hub(next(mirrors)), Hub(project.hub)
    until_seen(house.head, lambda: mirror.target() == hub.target(), "the target on the machine")
    pooled = mirror.path.parent / "pool"
    target = json.dumps(hub.target())
    until_seen(house.head, lambda: any(target in one.read_text() for one in pooled.glob("*.json")), "a warm tree")


def _starts(house: MachineHouse, project: Project, report: Report) -> None:
    """From the dispatch to the first line of the agent, on the head and on a machine that has the code."""
    head = house.head.client.machines().machines[0].name
    times: dict[str, list[float]] = {head: [], "m0": []}
    for number in range(_STARTS):
        for place, taken in times.items():
            shown = house.folder / "gates" / f"start-{place}-{number}"
            _until_warm(house, project)
            asked = time.time()
            command = f"date +%s.%N > {shown}; echo {number} > {place}.txt"
            project.until_settled(project.dispatch(f"start {place} {number}", command, on=[place]))
            taken.append(float(shown.read_text()) - asked)
    report.value("from dispatch to the agent, on the head", median(times[head]) * 1000, "ms")
    # Each start on the machine against the one before it on the head: other work on this host hits both.
    added = [there - here for here, there in zip(times[head], times["m0"], strict=True)]
    report.value("the same on a warm machine, in addition", median(added) * 1000, "ms", aim=50)
    least = min(times["m0"]) - min(times[head])
    report.value("the quickest of each, in addition", least * 1000, "ms", aim=50)
