"""Cost per ticket and of `legion status` when thousands have ended."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from bench import ground
from bench.report import ROUNDS, Report
from legion.domain.tickets.spec import TicketSpec
from legion.domain.tickets.ticket import Change, Land, Propose, Prove, Start
from legion.store.board import tickets
from legion.store.database.transactions import Store, sqlite_url
from tests.support.legion import PLAIN, Project, Squad, squad

_FEW, _MANY = 100, 10_000
_AT_REST = 5.0
"""Percent of a core."""


def run(folder: Path, report: Report) -> None:
    with _after(_FEW, folder / "few") as few, _after(_MANY, folder / "many") as many:
        # In turn, so that a busy moment of the machine hits both.
        pairs = [(_ticket(many, n), _ticket(few, n)) for n in range(ROUNDS * 2)]
        name = f"a ticket from dispatch to done after {_MANY:,}, against {_FEW}"
        report.ratio(name, [pair[0] for pair in pairs], [pair[1] for pair in pairs], aim=1.2)
        asked = [_timed(lambda: many.squad.client.status(many.cwd)) for _ in range(ROUNDS)]
        report.value(f"status of {_MANY:,} tickets, asked of the daemon", statistics.median(asked), "s", aim=0.3)
        typed = [_timed(lambda: ground.cli(many.squad, many.repository.root, "status")) for _ in range(ROUNDS)]
        report.value(f"`legion status` with {_MANY:,} tickets", statistics.median(typed), "s", aim=0.3)


@contextmanager
def _after(count: int, folder: Path) -> Iterator[Project]:
    """A project of which so many tickets have ended."""
    folder.mkdir()
    repository = ground.repository(folder / "repo", 100, "[agents]\nparallel = 4\n")
    with squad(folder, launch=PLAIN) as one:
        project = one.adopt(repository)
        _fill(one, count)
        # Now it notices what was written beside it.
        _ticket(project, -1)
        _until_at_rest(one)
        yield project


def _until_at_rest(one: Squad) -> None:
    """So many tickets at once are a day's events, and who follows them reads for a while."""
    assert one.process is not None
    daemon = psutil.Process(one.process.pid)
    while daemon.cpu_percent(interval=2.0) > _AT_REST:
        pass


def _ticket(project: Project, number: int) -> float:
    began = time.monotonic()
    ticket = project.dispatch(f"timed {number}", f"echo {time.time_ns()} > timed.txt")
    project.until(ticket, "done")
    return time.monotonic() - began


def _fill(one: Squad, count: int) -> None:
    """Ended tickets written straight into the store, as landing would leave them."""
    store = Store(sqlite_url(one.data.database))
    with store.read() as tx:
        there = sum(tickets.counts(tx).values())
    while there < count:
        with store.write() as tx:
            for _ in range(min(500, count - there)):
                ticket = tickets.create(tx, 1, TicketSpec(title=f"old {there}", text="as it was"))
                for step in (Start("0" * 40), Propose(Change(base="0" * 40, commit="1" * 40)), Prove(), Land("2" * 40)):
                    tickets.move(tx, ticket.id, step)
                there += 1
    store.close()


def _timed(action: Callable[[], object]) -> float:
    began = time.monotonic()
    action()
    return time.monotonic() - began
