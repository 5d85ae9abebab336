"""Describes failed checks to a person: the command, how it ended, its last line, and where its output is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from legion.domain.checks import CheckResult, Receipt
from legion.domain.failure_causes import likely_cause
from legion.jobs.board import Board
from legion.store.board import receipts
from legion.store.database.transactions import ReadTransaction

_LONGEST_LINE = 120
_FAILED = (CheckResult.RED, CheckResult.SETUP)


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
    lines = [line.strip() for line in receipt.tail.splitlines() if line.strip()]
    last = f", after: {lines[-1][:_LONGEST_LINE]}" if lines else ""
    where = f" (`less {context.data.root / receipt.output}` shows all of its output)" if receipt.output else ""
    cause = likely_cause(receipt.tail, receipt.exit_code)
    return f"`{receipt.label}` {ended}{last}{where}{f'. Likely cause: {cause}' if cause else ''}"
