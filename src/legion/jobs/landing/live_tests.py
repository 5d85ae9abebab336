"""Shows a test of the merge queue while it runs: an event at its start, an entry in the live state until its end."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator, Sequence

from legion.domain.events import EventKind
from legion.domain.landing.queue import QueueTestKind
from legion.domain.tickets.ticket import Ticket
from legion.jobs.checks import execution
from legion.jobs.checks.candidates import ChainLink
from legion.jobs.checks.execution import CheckedCommit, WantedCheck
from legion.jobs.context import Context
from legion.jobs.live_state import QueueTest
from legion.jobs.trees import ProjectContext


@contextlib.contextmanager
def shown(
    context: Context,
    project: ProjectContext,
    kind: QueueTestKind,
    tickets: Sequence[Ticket],
    commit: str,
    wanted: Sequence[WantedCheck],
    *,
    upstream: bool = False,
) -> Iterator[None]:
    """A test of which every result is stored already is over before anyone could look at it: it is not shown."""
    if kind is not QueueTestKind.ALONE and execution.has_receipts(context, project, commit, wanted):
        yield
        return
    test = QueueTest(
        project=project.id,
        kind=kind,
        tickets=tuple(ticket.id for ticket in tickets),
        upstream=upstream,
        tree=project.hub.tree_of(commit),
        checks=tuple((want.check.name, want.check.command) for want in wanted),
        since=context.clock(),
    )
    tests, key = context.live.queue.tests, uuid.uuid4().hex
    tests.update({key: test})
    try:
        data = {"tickets": list(test.tickets), "how": kind.value, "upstream": upstream, "commit": commit}
        with context.store.write() as tx:
            tx.record(EventKind.QUEUE_TEST, project=project.id, data=data)
        yield
    finally:
        tests.remove([key])


@contextlib.contextmanager
def of_chain(
    context: Context,
    project: ProjectContext,
    links: Sequence[ChainLink],
    wanted: Sequence[WantedCheck],
    *,
    complete: bool,
) -> Iterator[None]:
    """The test of a batch, or of a part of it."""
    kind = QueueTestKind.TOGETHER if complete else QueueTestKind.PART
    tickets = [link.ticket for link in links if link.ticket is not None]
    upstream = len(tickets) < len(links)
    with shown(context, project, kind, tickets, links[-1].commit, wanted, upstream=upstream):
        yield


@contextlib.contextmanager
def repeated(context: Context, project: ProjectContext, ticket: Ticket, against: CheckedCommit) -> Iterator[None]:
    """The red checks that blame a ticket, once more."""
    commands = {receipt.command for receipt in against.red}
    wanted = [want for want in against.wanted if want.check.command in commands]
    with shown(context, project, QueueTestKind.ALONE, [ticket], against.commit, wanted):
        yield
