"""Landing twenty ready changes with a check of two seconds, counted in check times."""

from __future__ import annotations

import random
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

from bench import ground
from bench.report import ROUNDS, Report
from legion.domain.events import Kind
from legion.store import events
from legion.store.database import Store, sqlite_url
from tests.support.legion import PLAIN, Project, new, squad

_CHECK = 2.0
_CHANGES = 20


def run(folder: Path, report: Report) -> None:
    for name, bad, slots, aim in (
        ("all good", None, 1, 3.0),
        ("one bad, one slot", 13, 1, 7.0),
        ("one bad, four slots", 13, 4, 4.0),
    ):
        runs = [_ready(folder / f"{name.replace(' ', '-')}-{n}", bad, slots) for n in range(ROUNDS)]
        seconds, rounds = (statistics.median(column) for column in zip(*runs, strict=True))
        wall_aim = None if bad is not None and slots == 1 else aim
        report.value(f"20 ready changes, {name}: wall", seconds / _CHECK, "check times", aim=wall_aim)
        report.value(f"20 ready changes, {name}: in sequence", rounds, "checks", aim=aim)
    for name, bad, slots, aim in (("all good", None, 2, 3.0), ("one bad, four slots", 13, 4, 4.0)):
        run = _arrivals(folder / f"arrivals-{slots}", bad, _config(slots), 20.0)
        report.value(f"20 changes within 20 s, {name}: after the last", run.after_last / _CHECK, "check times", aim=aim)


def train(folder: Path, report: Report, check: float = 10.0) -> None:
    """Changes that become ready over six check times, one of them bad: one after the other, in batches, as a train.

    Against them one batch, which waits until all are ready.
    """
    for slots, words in ((2, "two slots"), (4, "four slots")):
        seconds, _ = _ready(folder / f"one-batch-{slots}", 13, slots, check)
        what = f"20 changes, one bad, {check:g} s check, one batch of all, {words}"
        report.value(f"{what}: after the last", seconds / check, "check times")
        report.value(f"{what}: from the first", 6 + seconds / check, "check times")
    for name, more, slots, aim in (
        ("one after the other", "batch = 1\nspeculate = false\n", 1, None),
        ("batches, two slots", "speculate = false\n", 2, None),
        ("train, two slots", "speculate = true\n", 2, None),
        ("batches, four slots", "speculate = false\n", 4, None),
        ("train, four slots", "speculate = true\n", 4, 4.0),
    ):
        config = _config(slots, check) + more
        run = _arrivals(folder / f"train-{name.replace(' ', '-')}", 13, config, 6 * check)
        what = f"20 changes, one bad, {check:g} s check, {name}"
        report.value(f"{what}: after the last", run.after_last / check, "check times", aim=aim)
        report.value(f"{what}: from the first", run.from_first / check, "check times")
        report.value(f"{what}: a good change waits", run.waits / check, "check times")


def _config(slots: int, check: float = _CHECK) -> str:
    return (
        f'[checks.test]\nrun = "sleep {check:g}; sh check.sh"\n'
        f"[agents]\nparallel = {_CHANGES}\nattempts = 1\n[landing]\nchecks_at_once = {slots}\n"
    )


def _ready(folder: Path, bad: int | None, slots: int, check: float = _CHECK) -> tuple[float, int]:
    """The changes are held back by a gate, so that all are ready at once: seconds from there to the last landing, and
    how many checks ran one after the other in that time."""
    gate = folder / "gate"
    gate.mkdir(parents=True)
    repository = ground.repository(folder / "repo", 200, _config(slots, check))
    with squad(folder, launch=PLAIN, settings=f'[sandbox]\nread = ["{gate}"]\n') as one:
        project = one.adopt(repository)
        project.until_settled(project.dispatch("baseline", "echo > baseline.txt"))
        wait = f"while [ ! -e {gate}/open ]; do sleep 0.02; done"
        agents = [f"{wait}; {_write(n, bad)}" for n in range(_CHANGES)]
        ids = project.dispatch_all([new(f"change {n}", agent) for n, agent in enumerate(agents)])
        for ticket in ids:
            project.until(ticket, "working")
        opened = time.time()
        (gate / "open").touch()
        project.until_settled(patience=300)
        ready = max(project.ticket(ticket).runs[-1].ended_at or 0.0 for ticket in ids)
        return _last_landing(project, ids) - ready, _in_sequence(project, opened)


def _write(number: int, bad: int | None) -> str:
    return f"echo {'BROKEN' if number == bad else number} > change{number}.txt"


def _in_sequence(project: Project, since: float) -> int:
    """Checks since then; those that overlap in time count as one."""
    store = Store(sqlite_url(project.squad.data.database))
    with store.read() as tx:
        told = [
            event for event in events.after(tx, 0, limit=100_000) if event.kind is Kind.RECEIPT and event.at > since
        ]
    store.close()
    rounds, until = 0, 0.0
    for event in told:
        if event.at - float(str(event.data["duration"])) >= until:
            rounds += 1
            until = event.at
    return rounds


@dataclass(frozen=True, kw_only=True)
class _Arrivals:
    """Seconds until the last landing, from the last and from the first that became ready, and how long one waited."""

    after_last: float
    from_first: float
    waits: float
    """The median of all that landed, from ready to landed."""


def _arrivals(folder: Path, bad: int | None, config: str, within: float) -> _Arrivals:
    """Changes become ready at random moments."""
    folder.mkdir(parents=True)
    repository = ground.repository(folder / "repo", 200, config)
    chance = random.Random(7)
    with squad(folder, launch=PLAIN) as one:
        project = one.adopt(repository)
        ids = project.dispatch_all(
            [new(f"change {n}", f"sleep {chance.uniform(0, within):.2f}; {_write(n, bad)}") for n in range(_CHANGES)]
        )
        project.until_settled(patience=900)
        pages = [project.ticket(ticket) for ticket in ids]
        ready = [page.runs[-1].ended_at or 0.0 for page in pages]
        landed = {n: page.ticket.moved_at for n, page in enumerate(pages) if page.ticket.state == "done"}
        last = max(landed.values(), default=time.time())
        return _Arrivals(
            after_last=last - max(ready),
            from_first=last - min(ready),
            waits=statistics.median(moved - ready[n] for n, moved in landed.items()),
        )


def _last_landing(project: Project, ids: list[int]) -> float:
    landed = [project.ticket(ticket).ticket for ticket in ids]
    return max((line.moved_at for line in landed if line.state == "done"), default=time.time())
