"""The gateway's ledger is read to its end, also if the pass of a short run came and went between two checks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.gateway.accounting.ledger import LimitEntry
from legion.gateway.accounting.meter import encode
from legion.gateway.files.folder import GatewayFolder
from legion.jobs.scheduling.gateway_supervisor import GatewaySupervisor
from legion.store.work import usage
from tests.jobs.office import Office

PATIENCE = 30.0


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    one = Office(tmp_path)
    yield one
    one.close()


def report(office: Office, provider: str) -> None:
    """What the gateway writes up to half a second after the last answer of a run."""
    folder = GatewayFolder(office.context.data.gateway)
    folder.prepare()
    line = LimitEntry(
        at=1.0, run="", provider=provider, status=200, resets_at=3000.0, retry_after=None, utilization=0.98, window="5h"
    )
    with (folder.ledger / "2026-01-01.jsonl").open("ab") as ledger:
        ledger.write(encode(line))


def known(office: Office) -> set[str]:
    with office.context.store.read() as tx:
        return set(usage.limits(tx))


def test_a_limit_that_is_reported_after_the_end_of_a_short_run_is_read(office: Office):
    report(office, "first")
    supervisor = GatewaySupervisor(office.context)
    with office.context.store.commits() as committed:
        supervisor.start()
        try:
            assert committed.wait(PATIENCE)
            assert known(office) == {"first"}
            report(office, "second")
            committed.clear()
            # The run's end is committed; its pass is gone already.
            supervisor.poke()
            assert committed.wait(PATIENCE)
            assert known(office) == {"first", "second"}
        finally:
            supervisor.stop()
