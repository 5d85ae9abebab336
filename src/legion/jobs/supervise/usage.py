"""Copies the gateway's ledger into the store: every line once, summed up by run, model and day."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from legion.domain.errors import NotAllowed
from legion.domain.runs import Run
from legion.domain.scheduling.budgets import BudgetBalance, Budgets, balance
from legion.domain.scheduling.usage import ProviderLimit, Spending, Usage
from legion.gateway.accounting import ledger
from legion.gateway.accounting.ledger import LedgerPosition, RequestEntry
from legion.gateway.files.folder import GatewayFolder
from legion.jobs.board import Board
from legion.store import epic_sessions
from legion.store.board import questions
from legion.store.database.transactions import ReadTransaction
from legion.store.work import usage

_SOURCE = "gateway"
_RUN = re.compile(r"(?:ticket|agent|plan|ask)-\d+(?:-[a-z][a-z0-9_-]*)?-run-(\d+)")


def catch_up(context: Board) -> None:
    """Read the ledger from where the last reader stopped."""
    folder = GatewayFolder(context.data.gateway)
    if not folder.ledger.is_dir():
        return
    while _read_more(context, folder):
        pass


def _read_more(context: Board, folder: GatewayFolder) -> bool:
    with context.store.read() as tx:
        before = LedgerPosition(*usage.read_up_to(tx, _SOURCE))
    lines, after = ledger.read(folder, before)
    if after == before:
        return False
    with context.store.write() as tx:
        if LedgerPosition(*usage.read_up_to(tx, _SOURCE)) != before:
            # Another reader was faster.
            return True
        usage.add(tx, _summed(line for line in lines if isinstance(line, RequestEntry)))
        for line in lines:
            if isinstance(line, ledger.LimitEntry):
                usage.note_limit(tx, _limit(line))
        if any(isinstance(line, ledger.LimitEntry) for line in lines):
            # Other tickets may be able to start now.
            tx.tell()
        usage.have_read(tx, _SOURCE, after.file, after.offset)
    return True


def day_of(moment: float) -> str:
    """In UTC, as YYYY-MM-DD."""
    return datetime.fromtimestamp(moment, UTC).date().isoformat()


def _summed(entries: Iterable[RequestEntry]) -> list[Spending]:
    sums: dict[tuple[int, str, str, str], Usage] = {}
    for entry in entries:
        run = _RUN.fullmatch(entry.run)
        if run is None:
            continue
        key = (int(run[1]), entry.provider, entry.model, day_of(entry.at))
        sums[key] = sums.get(key, Usage()) + _usage(entry)
    return [
        Spending(run=run, provider=provider, model=model, day=day, usage=summed)
        for (run, provider, model, day), summed in sums.items()
    ]


def _usage(entry: RequestEntry) -> Usage:
    tokens = entry.input + entry.output + entry.cache_read + entry.cache_write
    return Usage(
        requests=1,
        failed=int(entry.status >= 400),
        unpriced=int(entry.usd is None and tokens > 0),
        input=entry.input,
        output=entry.output,
        cache_read=entry.cache_read,
        cache_write=entry.cache_write,
        usd=entry.usd or 0.0,
        seconds=entry.ms / 1000,
    )


def _limit(line: ledger.LimitEntry) -> ProviderLimit:
    resets_at = line.resets_at
    if resets_at is None and line.retry_after is not None:
        resets_at = line.at + line.retry_after
    return ProviderLimit(
        provider=line.provider,
        at=line.at,
        status=line.status,
        span=line.window,
        utilization=line.utilization,
        resets_at=resets_at,
    )


def budgets(context: Board, tx: ReadTransaction) -> Budgets:
    """Those of the person's settings, and of epics."""
    wanted = context.user.budgets
    return Budgets(
        day=wanted.day_usd, project=wanted.project_usd, epic=wanted.epic_usd, epics=epic_sessions.budgets(tx)
    )


def purse(context: Board, tx: ReadTransaction) -> BudgetBalance:
    return balance(budgets(context, tx), usage.spent(tx), day_of(context.clock()), questions.more_money(tx))


def refuse_without_money(context: Board, tx: ReadTransaction, project: int) -> None:
    """Raises NotAllowed where the budget of the day or of the project is spent."""
    empty = purse(context, tx).empty(project, "") if budgets(context, tx) else None
    if empty is not None:
        raise NotAllowed(f"It would cost money, and {empty.words}.")


def stopped_for_budget(context: Board, run: Run) -> str:
    """Why the run was stopped, where a budget was the reason; empty otherwise."""
    with contextlib.suppress(FileNotFoundError):
        return over_budget_file(context, run).read_text()
    return ""


def over_budget_file(context: Board, run: Run) -> Path:
    return context.data.runs / run.name / "over-budget"
