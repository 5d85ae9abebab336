"""Cost per ticket and of `legion status` when thousands have ended."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from bench import ground
from bench.report import ROUNDS, Report
from legion.domain.tickets import Change, Land, Propose, Prove, Start, Wish
from legion.store import tickets
from legion.store.database import Store, sqlite_url
from tests.support.legion import Project, Squad, squad


def run(folder: Path, report: Report) -> None:
    repository = ground.repository(folder / "repo", 100, "[agents]\nparallel = 4\n")
    with squad(folder) as one:
        project = one.adopt(repository)
        _until(one, 100)
        few = [_ticket(project, n) for n in range(ROUNDS * 2)]
        _until(one, 10_000)
        many = [_ticket(project, n) for n in range(ROUNDS * 2)]
        report.ratio("a ticket from dispatch to done after 10,000, against 100", many, few, aim=1.2)
        asked = [_timed(lambda: one.client.status(project.cwd)) for _ in range(ROUNDS)]
        report.value("status of 10,000 tickets, asked of the daemon", statistics.median(asked), "s", aim=0.3)
        typed = [_timed(lambda: ground.cli(one, repository.root, "status")) for _ in range(ROUNDS)]
        report.value("`legion status` with 10,000 tickets", statistics.median(typed), "s", aim=0.3)


def _ticket(project: Project, number: int) -> float:
    began = time.monotonic()
    ticket = project.dispatch(f"timed {number}", f"echo {time.time_ns()} > timed.txt")
    project.until(ticket, "done")
    return time.monotonic() - began


def _until(one: Squad, count: int) -> None:
    """Ended tickets written straight into the store, as landing would leave them."""
    store = Store(sqlite_url(one.data.database))
    with store.read() as tx:
        there = sum(tickets.counts(tx).values())
    while there < count:
        with store.write() as tx:
            for _ in range(min(500, count - there)):
                ticket = tickets.create(tx, 1, Wish(title=f"old {there}", text="as it was"))
                for step in (Start("0" * 40), Propose(Change(base="0" * 40, commit="1" * 40)), Prove(), Land("2" * 40)):
                    tickets.move(tx, ticket.id, step)
                there += 1
    store.close()


def _timed(action: object) -> float:
    began = time.monotonic()
    assert callable(action)
    action()
    return time.monotonic() - began
