"""Failed checks: remembered of a target, and described to a person by their command, how it ended, and what it said."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from legion.domain.checks import CheckResult, Receipt
from legion.domain.events import EventKind
from legion.domain.failure_causes import likely_cause, telling_line
from legion.jobs.board import Board
from legion.store.board import projects, receipts
from legion.store.database.transactions import ReadTransaction, Transaction

_FAILED = (CheckResult.RED, CheckResult.SETUP)


def remember(tx: Transaction, project: int, target: str, red: Sequence[Receipt]) -> None:
    """Whether the target itself passes, unless it has moved meanwhile."""
    record, verdict = projects.get(tx, project), CheckResult.RED if red else CheckResult.GREEN
    if record.target != target or (record.baseline_commit, record.baseline_verdict) == (target, verdict):
        return
    kind = EventKind.BASELINE_RED if red else EventKind.BASELINE_GREEN
    facts = {"commit": target, "failed": [receipt.command for receipt in red]}
    projects.save(tx, replace(record, baseline_commit=target, baseline_verdict=verdict), kind, facts)


def on_commit(tx: ReadTransaction, project: int, commit: str) -> tuple[Receipt, ...]:
    """The checks whose last result on this commit is red."""
    last = {receipt.command: receipt for receipt in receipts.for_commit(tx, project, commit)}
    return tuple(receipt for receipt in last.values() if receipt.verdict in _FAILED)


def sentences(context: Board, red: Iterable[Receipt]) -> list[str]:
    return [_sentence(context, receipt) for receipt in red]


def by_ids(tx: ReadTransaction, ids: object) -> tuple[Receipt, ...]:
    """The receipts that an event names; events of earlier releases name none."""
    wanted: Sequence[object] = ids if isinstance(ids, list) else ()
    return receipts.get_many(tx, [id for id in wanted if isinstance(id, int)])


def _sentence(context: Board, receipt: Receipt) -> str:
    if receipt.verdict is CheckResult.SETUP:
        return f"`{receipt.label}` was not run: {receipt.tail.strip()}"
    ended = "did not end by itself" if receipt.exit_code is None else f"ended with exit code {receipt.exit_code}"
    last = f", after: {telling_line(receipt.tail)}" if receipt.tail.strip() else ""
    where = f" (`less {context.data.root / receipt.output}` shows all of its output)" if receipt.output else ""
    cause = likely_cause(receipt.tail, receipt.exit_code)
    return f"`{receipt.label}` {ended}{last}{where}{f'. Likely cause: {cause}' if cause else ''}"
