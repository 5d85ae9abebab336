"""A head with 1,000 simulated machines and 10,000 queued jobs on one Postgres: beats, the queue, and decisions. Then
real machines, see `fleet`.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import TypeVar

from bench import fleet
from bench.report import ROUNDS, Report
from legion.domain.machines.placement import RunPlace
from legion.domain.scheduling.decide import BoardSnapshot, JobKind, ProjectView, decide
from legion.domain.tickets.spec import TicketSpec
from legion.domain.tickets.ticket import State, Ticket
from legion.jobs.machines.engine import PlacedJob
from legion.jobs.machines.postgres_queue import PostgresQueue
from legion.store import snapshot
from legion.store.board import tickets
from legion.store.database.transactions import Store
from legion.store.work import machines
from tests.store.making import add_project
from tests.support.postgres_keeper import Server

MACHINES, JOBS, PROJECTS, SLOTS = 1_000, 10_000, 20, 8
_BEAT = 15.0
"""Seconds between two beats of a machine."""
_Item = TypeVar("_Item")
_TAKES = 300
_HEADS = 8
"""Threads of the head that serve machines."""
_DURABLE = ("listen_addresses=''", "shared_buffers=128MB", "max_connections=100")
"""A commit waits for the disk, as in earnest."""


def run(folder: Path, report: Report) -> None:
    _decisions(report)
    with _postgres() as url:
        store = Store(url)
        store.migrate()
        queue = PostgresQueue(url)
        try:
            names = _join(store)
            _fill(queue, names, report)
            _beats(store, queue, names, report)
            _takes(queue, names, report)
            _load(store, report)
        finally:
            queue.close()
            store.close()
    fleet.run(folder, report, _postgres)


def _join(store: Store) -> list[str]:
    names = [f"m{number:04}" for number in range(MACHINES)]
    with store.write() as tx:
        for name in names:
            code = machines.invite(tx, name=name, labels=(), slots=SLOTS, seconds=900.0)
            assert machines.join(tx, code, boot="b", version="1", protocol=1, toolchain="") is not None
    return names


def _fill(queue: PostgresQueue, names: list[str], report: Report) -> None:
    chance = Random(1)
    jobs = [
        PlacedJob(run=f"ticket-{n}-run-{n}", generation=1, machine=chance.choice(names), project=n % PROJECTS)
        for n in range(JOBS)
    ]
    seconds = _spread(queue.place, jobs)
    report.value(f"{JOBS:,} jobs placed, jobs each second", JOBS / seconds, "/s")


def _beats(store: Store, queue: PostgresQueue, names: list[str], report: Report) -> None:
    with store.read() as tx:
        ids = {one.name: one.id for one in machines.all(tx)}

    def beat(name: str) -> None:
        queue.renew(name)
        with store.write() as tx:
            machines.beat(tx, ids[name], boot="b", version="1", protocol=1, mirrors=(1, 2))

    _spread(beat, names)
    rounds = [_spread(beat, names) for _ in range(3)]
    report.value(f"beats of {MACHINES:,} machines, every {_BEAT:g} s", statistics.median(rounds), "s", aim=_BEAT)


def _takes(queue: PostgresQueue, names: list[str], report: Report) -> None:
    some = Random(2).sample(names, _TAKES)
    one_by_one = sorted(_timed(partial(queue.take, name, 1)) for name in some[: _TAKES // 2])
    report.value(f"a machine takes a job of {JOBS:,}, median", statistics.median(one_by_one) * 1000, "ms", aim=50)
    report.value("the slowest of a hundred", one_by_one[int(len(one_by_one) * 0.99)] * 1000, "ms")
    rest = some[_TAKES // 2 :]
    report.value("jobs taken each second", len(rest) / _spread(lambda name: queue.take(name, 1), rest), "/s")


def _load(store: Store, report: Report) -> None:
    """The scheduler's reading of a board with that many queued tickets."""
    with store.write() as tx:
        ids = [
            add_project(tx, f"p{number}", root=f"/p{number}", common_dir=f"/p{number}/.git").id for number in range(2)
        ]
        for number in range(JOBS):
            tickets.create(tx, ids[number % 2], TicketSpec(title=f"ticket {number}", text="work"))

    def load() -> None:
        with store.read() as tx:
            snapshot.load(tx, 32, {})
            machines.all(tx)

    times = [_timed(load) for _ in range(ROUNDS)]
    report.value(f"the board of {JOBS:,} queued tickets, read", statistics.median(times) * 1000, "ms")

    def news() -> None:
        with store.read() as tx:
            assert len(machines.news(tx)) == MACHINES

    times = [_timed(news) for _ in range(ROUNDS)]
    report.value(f"news of {MACHINES:,} machines, one look after a commit", statistics.median(times) * 1000, "ms")


def _decisions(report: Report) -> None:
    for free, name in ((10, "10 free slots"), (0, "no free slot"), (MACHINES * SLOTS, "all slots free")):
        board = _board(free)
        # Processor time: it waits for nothing, and other work on the machine says nothing about it.
        seconds = statistics.median(_timed(partial(decide, board, 0.0), time.process_time) for _ in range(ROUNDS))
        report.value(f"decide, {MACHINES:,} machines, {JOBS:,} queued, {name}", seconds * 1000, "ms", aim=50)


def _board(free: int) -> BoardSnapshot:
    places = [
        RunPlace(
            name=f"m{number:04}",
            slots=SLOTS,
            builders=max(0, SLOTS - max(0, free - number * SLOTS)),
            mirrors=frozenset({number % PROJECTS + 1, (number + 7) % PROJECTS + 1}),
        )
        for number in range(MACHINES)
    ]
    queued = tuple(
        Ticket(id=n + 1, project=n % PROJECTS + 1, spec=TicketSpec(title="", text=""), state=State.QUEUED, version=1)
        for n in range(JOBS)
    )
    projects = tuple(
        ProjectView(
            id=number + 1,
            parallel=JOBS,
            paused=False,
            trusted=True,
            baseline_known=True,
            baseline_red=False,
            upstream_pending=False,
        )
        for number in range(PROJECTS)
    )
    head = RunPlace(name="head", head=True, slots=32, builders=32)
    return BoardSnapshot(
        projects=projects,
        tickets=queued,
        ended={},
        jobs=frozenset(),
        slots=32,
        places=(head, *places),
        travels=frozenset({JobKind.RUN, JobKind.REVIEW}),
    )


def _spread(work: Callable[[_Item], object], items: list[_Item]) -> float:
    """Seconds until all of it is done by the head's threads."""
    began = time.perf_counter()
    with ThreadPoolExecutor(_HEADS) as pool:
        for _ in pool.map(work, items):
            pass
    return time.perf_counter() - began


def _timed(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    began = clock()
    work()
    return clock() - began


@contextmanager
def _postgres() -> Iterator[str]:
    # The server runs as another user, which cannot enter the folder of the bench.
    with tempfile.TemporaryDirectory(prefix="legion-bench-pg-", ignore_cleanup_errors=True) as made:
        Path(made).chmod(0o755)
        server = Server(Path(made) / "pg", _DURABLE)
        server.start()
        try:
            yield f"postgresql+psycopg://legion@/postgres?host={server.folder}"
        finally:
            server.stop()
