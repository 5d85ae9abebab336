"""The gateway's ledger is read to its end, also if the pass of a short run came and went between two checks."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from legion.gateway.accounting.ledger import LimitEntry, RequestEntry
from legion.gateway.accounting.meter import encode
from legion.gateway.files.folder import GatewayFolder
from legion.jobs.scheduling.gateway_supervisor import GatewaySupervisor
from legion.jobs.supervise.usage import catch_up
from legion.store.work import runs, usage
from tests.jobs.office import Office
from tests.support.attacks import Attacker, Door, attack

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


@attack(Attacker.PROGRAM, Door.MONEY)
def test_many_readers_of_the_ledger_at_once_count_each_request_once(office: Office):
    folder = GatewayFolder(office.context.data.gateway)
    folder.prepare()
    with office.context.store.write() as tx:
        run = runs.start_ask(tx, 1, "lesson")
    whole: dict[str, Any] = {field.name: 0 for field in dataclasses.fields(RequestEntry)}
    named = {"agent": "", "provider": "p", "model": "m", "error": "", "run": f"ask-1-run-{run.id}", "usd": 1.0}
    with (folder.ledger / "2026-01-01.jsonl").open("ab") as ledger:
        for number in range(20):
            ledger.write(encode(RequestEntry(**{**whole, **named, "id": str(number)})))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: catch_up(office.context), range(8)))
    with office.context.store.read() as tx:
        assert usage.of_runs(tx, [run.id])[run.id].usd == 20.0


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
