"""What it costs to be able to go back: a copy of the board after every change, a state of the tree after every call."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from bench import ground
from bench.report import ROUNDS, Report
from legion.domain.projects import ConfigOrigin
from legion.domain.tickets.spec import TicketSpec
from legion.domain.tickets.ticket import Stop
from legion.drivers.tree_states import StateRecorder, StateStore
from legion.git.hub.board_ref import BoardRef
from legion.git.hub.repository import Hub
from legion.git.trees.live import Quarantine
from legion.store import board_records, events
from legion.store.board import projects, tickets
from legion.store.database.transactions import Store, sqlite_url
from tests.support.live_trees import live

_FEW, _MANY = 100, 10_000
_CALLS = 20


def run(folder: Path, report: Report) -> None:
    few, many = _Copied(folder / "few", _FEW), _Copied(folder / "many", _MANY)
    report.value(f"the first copy of a board with {_MANY:,} tickets", many.first, "s")
    pairs = [(many.change(n), few.change(n)) for n in range(1, ROUNDS * 4)]
    name = f"the copy after a change among {_MANY:,}, against {_FEW}"
    report.ratio(name, [pair[0] for pair in pairs], [pair[1] for pair in pairs], aim=1.2)
    cpu = _cpu(lambda: [many.change(100 + n) for n in range(_CALLS)]) / _CALLS
    report.value("processor time of such a copy, at most once a second", cpu * 1000, "ms", aim=30)
    report.value(f"a database of {_MANY:,} tickets made anew", many.rebuild(), "s")
    for count in (50, 5000):
        took, cpu = _states(folder / f"tree-{count}", count)
        report.value(f"a state of {count:,} files after a call", took, "ms", aim=30)
        report.value("  its processor time", cpu, "ms")


class _Copied:
    def __init__(self, folder: Path, count: int) -> None:
        folder.mkdir()
        self._folder = folder
        self._store = Store(sqlite_url(folder / "legion.db"))
        self._store.migrate()
        self._board = BoardRef(folder)
        with self._store.write() as tx:
            project = projects.add(
                tx,
                name="bench",
                root="/",
                common_dir="/",
                branch="main",
                worktrees="/",
                config_text="",
                config_hash="",
                config_origin=ConfigOrigin.CHECKOUT,
                target="0" * 40,
            )
            for number in range(count):
                tickets.create(tx, project.id, TicketSpec(title=f"ticket {number}", text="as it was " * 40))
        self._tip: str | None = None
        self._event: int | None = None
        began = time.monotonic()
        self._copy()
        self.first = time.monotonic() - began

    def change(self, number: int) -> float:
        with self._store.write() as tx:
            tickets.move(tx, number, Stop())
        began = time.monotonic()
        self._copy()
        return time.monotonic() - began

    def rebuild(self) -> float:
        began = time.monotonic()
        new = Store(sqlite_url(self._folder / "new.db"))
        board_records.restore(new, [self._board.read()])
        new.close()
        return time.monotonic() - began

    def _copy(self) -> None:
        with self._store.read() as tx:
            found, newest = board_records.files(tx, 1, self._event), events.last(tx)
        whole = self._event is None
        self._tip = self._board.write(found, expected=self._tip, whole=whole, message="bench", when=1)
        self._event = newest


def _states(folder: Path, count: int) -> tuple[float, float]:
    folder.mkdir()
    repository = ground.repository(folder / "repo", count, "")
    hub = Hub.create(repository.root / ".git", folder / "hub.git")
    base = hub.start_target(hub.fetch_person(repository.root / ".git", "main"))
    kept = folder / "kept"
    prefix, env = Quarantine(hub, kept / "reader").prefix(live(hub, repository.root), store=kept)
    recorder = StateRecorder(
        StateStore(
            prefix=prefix,
            env=env,
            folder=str(kept),
            base=base,
            seed=str(repository.root / ".git/index"),
            most=10_000,
            most_bytes=1 << 40,
        )
    )
    took: list[float] = []

    def call() -> None:
        for number in range(_CALLS):
            (repository.root / "changed.txt").write_text(f"{number}\n")
            shot = recorder.record()
            assert shot is not None, "git could not keep a state"
            took.append(shot.ms)

    cpu = _cpu(call)
    return statistics.median(took), cpu / _CALLS * 1000


def _cpu(work: Callable[[], object]) -> float:
    before = os.times()
    work()
    after = os.times()
    return sum(after[:4]) - sum(before[:4])
