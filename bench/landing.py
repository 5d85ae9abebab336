"""Landing twenty ready changes with a check of two seconds, counted in check times."""

from __future__ import annotations

import random
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

from bench import ground
from bench.report import ROUNDS, Report
from legion.domain.events import Event, EventKind
from legion.store import events
from legion.store.database.transactions import Store, sqlite_url
from tests.support.legion import PLAIN, Project, new, squad

_CHECK = 2.0
_CHANGES = 20


_ONE_BAD = frozenset({13})
_FIFTH_BAD = frozenset({2, 7, 13, 16})


def run(folder: Path, report: Report) -> None:
    for name, bad, slots, aim in (
        ("all good", frozenset[int](), 1, 3.0),
        ("one bad, one slot", _ONE_BAD, 1, 7.0),
        ("one bad, four slots", _ONE_BAD, 4, 4.0),
    ):
        runs = [_ready(folder / f"{name.replace(' ', '-')}-{n}", bad, slots)[0] for n in range(ROUNDS)]
        seconds = statistics.median(one.seconds for one in runs)
        rounds = statistics.median(one.in_sequence for one in runs)
        wall_aim = None if bad and slots == 1 else aim
        report.value(f"20 ready changes, {name}: wall", seconds / _CHECK, "check times", aim=wall_aim)
        report.value(f"20 ready changes, {name}: in sequence", rounds, "checks", aim=aim)
    for name, bad, slots, aim in (("all good", frozenset[int](), 2, 3.0), ("one bad, four slots", _ONE_BAD, 4, 4.0)):
        run = _arrivals(folder / f"arrivals-{slots}", bad, _config(slots), 20.0)
        report.value(f"20 changes within 20 s, {name}: after the last", run.after_last / _CHECK, "check times", aim=aim)


def train(folder: Path, report: Report, check: float = 10.0) -> None:
    """Changes that become ready over six check times: one after the other, in batches, as a train.

    Against them one batch, which waits until all are ready. First with one bad change, then with one bad in five.
    """
    for slots, words in ((2, "two slots"), (4, "four slots")):
        (ready,) = _ready(folder / f"one-batch-{slots}", _ONE_BAD, slots, check)
        what = f"20 changes, one bad, {check:g} s check, one batch of all, {words}"
        report.value(f"{what}: after the last", ready.seconds / check, "check times")
        report.value(f"{what}: from the first", 6 + ready.seconds / check, "check times")
    for name, more, slots, aim in (
        ("one after the other", "batch = 1\nspeculate = false\n", 1, None),
        ("batches, two slots", "speculate = false\n", 2, None),
        ("train, two slots", "speculate = true\n", 2, None),
        ("batches, four slots", "speculate = false\n", 4, None),
        ("train, four slots", "speculate = true\n", 4, 4.0),
    ):
        _train_of(folder, report, check, name, more, slots, aim)
    fifth_bad(folder, report)


def fifth_bad(folder: Path, report: Report, check: float = _CHECK) -> None:
    """One bad change in five: a batch of many is always red, so they have to become smaller by themselves."""
    for slots, words in ((1, "one slot"), (2, "two slots"), (4, "four slots")):
        waves = _ready(folder / f"fifth-{slots}", _FIFTH_BAD, slots, check, waves=2)
        for which, ready in zip(("20 ready changes", "the next 20"), waves, strict=True):
            what = f"{which}, 20 % bad, {check:g} s check, {words}"
            report.value(f"{what}: until the last has ended", ready.seconds / check, "check times")
            report.value(f"{what}: all checks", ready.checks, "checks")
    for name, more, slots in (
        ("one after the other", "batch = 1\nspeculate = false\n", 1),
        ("train, two slots", "speculate = true\n", 2),
        ("train, four slots", "speculate = true\n", 4),
    ):
        _train_of(folder, report, check, name, more, slots, None, _FIFTH_BAD)


def _train_of(
    folder: Path,
    report: Report,
    check: float,
    name: str,
    more: str,
    slots: int,
    aim: float | None,
    bad: frozenset[int] = _ONE_BAD,
) -> None:
    words = "one bad" if bad == _ONE_BAD else "20 % bad"
    place = folder / f"train-{len(bad)}-{name.replace(' ', '-')}"
    run = _arrivals(place, bad, _config(slots, check) + more, 6 * check)
    what = f"20 changes, {words}, {check:g} s check, {name}"
    report.value(f"{what}: after the last", run.after_last / check, "check times", aim=aim)
    report.value(f"{what}: from the first", run.from_first / check, "check times")
    report.value(f"{what}: a good change waits", run.waits / check, "check times")
    report.value(f"{what}: all checks", run.checks, "checks")


def _config(slots: int, check: float = _CHECK) -> str:
    return (
        f'[checks.test]\nrun = "sleep {check:g}; sh check.sh"\n'
        f"[agents]\nparallel = {_CHANGES}\nattempts = 1\n[landing]\nchecks_at_once = {slots}\n"
    )


@dataclass(frozen=True, kw_only=True)
class _Ready:
    """Changes that were ready at once, from the last of them on."""

    seconds: float
    """Until the last landing, or, where several are bad, until the last went back."""
    in_sequence: int
    """Checks; those that overlap in time count as one."""
    checks: int


def _ready(folder: Path, bad: frozenset[int], slots: int, check: float = _CHECK, waves: int = 1) -> tuple[_Ready, ...]:
    """The changes are held back by a gate, so that all are ready at once. Waves come one after the other."""
    gate = folder / "gate"
    gate.mkdir(parents=True)
    repository = ground.repository(folder / "repo", 200, _config(slots, check))
    with squad(folder, launch=PLAIN, settings=f'[sandbox]\nread = ["{gate}"]\n') as one:
        project = one.adopt(repository)
        project.until_settled(project.dispatch("baseline", "echo > baseline.txt"))
        return tuple(_wave(project, gate, wave, bad) for wave in range(waves))


def _wave(project: Project, gate: Path, wave: int, bad: frozenset[int]) -> _Ready:
    wait = f"while [ ! -e {gate}/open{wave} ]; do sleep 0.02; done"
    agents = [f"{wait}; {_write(n, bad, wave)}" for n in range(_CHANGES)]
    ids = project.dispatch_all([new(f"change {wave}-{n}", agent) for n, agent in enumerate(agents)])
    for ticket in ids:
        project.until(ticket, "working")
    opened = time.time()
    (gate / f"open{wave}").touch()
    project.until_settled(*ids, patience=900)
    pages = [project.ticket(ticket) for ticket in ids]
    ready = max(page.runs[-1].ended_at or 0.0 for page in pages)
    checks = _checks(project, opened)
    ended = max(page.ticket.moved_at for page in pages if page.ticket.state == "done" or len(bad) > 1)
    return _Ready(seconds=ended - ready, in_sequence=_in_sequence(checks), checks=len(checks))


def _write(number: int, bad: frozenset[int], wave: int = 0) -> str:
    return f"echo {'BROKEN' if number in bad else number} > change{wave}-{number}.txt"


def _checks(project: Project, since: float = 0.0) -> list[Event]:
    """All that ended since then, whatever came out."""
    store = Store(sqlite_url(project.squad.data.database))
    with store.read() as tx:
        told = events.after(tx, 0, limit=100_000)
    store.close()
    return [event for event in told if event.kind is EventKind.RECEIPT and event.at > since]


def _in_sequence(told: list[Event]) -> int:
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
    checks: int


def _arrivals(folder: Path, bad: frozenset[int], config: str, within: float) -> _Arrivals:
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
            checks=len(_checks(project)),
        )
