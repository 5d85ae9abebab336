"""Lists the tests of a merge queue that run now, and the checks that blamed a change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from legion.domain.checks import CheckResult, Receipt
from legion.domain.events import Event, EventKind
from legion.domain.tickets.ticket import State, Ticket
from legion.jobs.context import Context
from legion.jobs.live_state import QueueTest
from legion.store import events
from legion.store.board import receipts, tickets
from legion.store.database.transactions import ReadTransaction
from legion.wire.controls import QueueBlame, QueueCheck, QueueTestLine

_SECONDS = 86_400
_MOST = 8
_LANDS_AFTER_ALL = frozenset({State.LANDING, State.DONE})


def running(context: Context, tx: ReadTransaction, project: int) -> list[QueueTestLine]:
    """The tests that run now, the oldest first."""
    mine = [one for one in context.live.queue.tests.current.values() if one.project == project]
    return [_line(one, receipts.for_tree(tx, project, one.tree)) for one in mine]


def _line(test: QueueTest, known: Iterable[Receipt]) -> QueueTestLine:
    # A red result from before this test is repeated, a green one counts.
    done = {
        one.command: one.verdict.value for one in known if one.verdict is CheckResult.GREEN or one.made_at >= test.since
    }
    checks = [QueueCheck(name=name, state=done.get(command, "waits")) for name, command in test.checks]
    for check in checks:
        if check.state == "waits":
            check.state = "runs"
            break
    return QueueTestLine(
        kind=test.kind.value, tickets=list(test.tickets), upstream=test.upstream, checks=checks, since=test.since
    )


def blamed(context: Context, tx: ReadTransaction, project: int, live: Sequence[Ticket]) -> list[QueueBlame]:
    """Those whose red checks are repeated now, then those of the last day that were sent back and have not landed."""
    now = context.live.queue.blamed.current
    waiting = [
        QueueBlame(
            ticket=one.id, title=one.spec.title, state="blamed", checks=list(now[one.id]), why="", at=one.moved_at
        )
        for one in live
        if one.id in now
    ]
    latest = {
        one.ticket: one
        for one in events.since(tx, project, EventKind.SENT_BACK, context.clock() - _SECONDS)
        if one.ticket is not None and one.ticket not in now
    }
    there = tickets.get_many(tx, [number for number in latest if number in tickets.states_of(tx, latest)])
    back = [_sent_back(tx, one, latest[one.id]) for one in there if one.state not in _LANDS_AFTER_ALL]
    return [*waiting, *sorted(back, key=lambda one: -one.at)[:_MOST]]


def _sent_back(tx: ReadTransaction, ticket: Ticket, event: Event) -> QueueBlame:
    named = event.data.get("receipts")
    failed = receipts.get_many(tx, [int(one) for one in named]) if isinstance(named, list) else ()
    return QueueBlame(
        ticket=ticket.id,
        title=ticket.spec.title,
        state=ticket.state.value,
        checks=list(dict.fromkeys(one.name for one in failed)),
        why=str(event.data.get("why") or ""),
        at=event.at,
    )
