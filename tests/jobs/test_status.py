"""What the board tells after a long day."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.domain.scheduling.usage import Spending, Usage
from legion.domain.tickets.ticket import Fail, Start
from legion.runner.spec import RunFolder
from legion.service.views import status
from legion.store.board import tickets
from legion.store.work import runs, usage
from legion.wire.board import DaemonLine
from tests.jobs.office import Office
from tests.store.making import COMMIT, add_ticket, land

DAEMON = DaemonLine(pid=1, url="", version="", data_dir="", started_at=0.0, sandbox="")


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    one = Office(tmp_path)
    yield one
    one.close()


def test_what_failed_is_listed_and_its_money_counts_however_much_has_ended_since(office: Office):
    with office.context.store.write() as tx:
        failed = add_ticket(tx, office.project).id
        tickets.move(tx, failed, Start(COMMIT))
        run = runs.start(tx, failed, 1).id
        usage.add(tx, [Spending(run=run, provider="p", model="m", day="2026-01-02", usage=Usage(requests=1, usd=2.0))])
        tickets.move(tx, failed, Fail("gave up"))
        dropped = add_ticket(tx, office.project).id
        run = runs.start(tx, dropped, 1).id
        usage.add(tx, [Spending(run=run, provider="p", model="m", day="2026-01-02", usage=Usage(requests=1, usd=0.5))])
        tickets.drop(tx, dropped)
    with office.context.store.write() as tx:
        for _ in range(60):
            land(tx, add_ticket(tx, office.project).id)
    shown = status.status(office.context, DAEMON, str(office.root), False)
    assert failed in [ticket.id for ticket in shown.tickets]
    assert len(shown.tickets) + shown.omitted == sum(shown.counts.values())
    assert shown.usage is not None
    assert shown.usage.usd == 2.5


def test_a_ticket_whose_agent_has_ended_says_that_its_work_is_being_saved(office: Office):
    with office.context.store.write() as tx:
        ticket = add_ticket(tx, office.project).id
        tickets.move(tx, ticket, Start(COMMIT))
        run = runs.start(tx, ticket, 1)
    folder = office.context.data.runs / run.name
    folder.mkdir(parents=True)
    RunFolder(folder).spec.write_text("{}")

    def doing() -> str:
        (line,) = status.status(office.context, DAEMON, str(office.root), False).tickets
        return line.doing

    assert "agent at work" in doing()
    (folder / "result.json").write_text("{}")
    assert doing() == "the agent has ended; its work is saved and judged"
