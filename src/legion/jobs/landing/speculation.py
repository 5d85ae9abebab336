"""Speculative testing: while a batch is tested, the next batches are built on top of it and tested in parallel.

Speculation leaves only receipts. If a batch lands completely, the next one is based on exactly the commit that it was
tested on, and its receipts exist already. If not, the tests above it are cancelled and their slots are free for the
search. A wrong guess costs time and never changes what lands.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
import uuid
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from legion.domain.checks import CheckResult
from legion.domain.errors import LegionError
from legion.domain.events import EventKind
from legion.domain.landing.queue import QueueTestKind
from legion.domain.tickets.ticket import State, Ticket
from legion.git.merge.candidates import MergeCandidate
from legion.jobs.checks import candidates, execution
from legion.jobs.checks.candidates import ChainLink, candidate
from legion.jobs.checks.execution import CheckedCommit, WantedCheck
from legion.jobs.checks.ticket_watch import as_they_are, cancelling
from legion.jobs.context import Context
from legion.jobs.landing.queue import MergeQueue
from legion.jobs.live_state import QueueTest
from legion.jobs.trees import ProjectContext
from legion.jobs.workspace.command import CancelToken, cancel_all
from legion.store.board import receipts, tickets


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


log = logging.getLogger(__name__)

_POLL = 0.2
"""Seconds between two checks for new arrivals."""

_ABOUT_TO_ARRIVE = frozenset({State.WORKING, State.CHECKING})


@dataclass(frozen=True, kw_only=True)
class _SpeculativeBatch:
    """A batch on top of a commit that has not landed yet."""

    base: str
    batch: tuple[Ticket, ...]
    tip: str
    cancel: CancelToken
    tested: Future[CheckedCommit]

    @property
    def result(self) -> CheckedCommit | None:
        """None while its checks run, and where they could not be run."""
        if not self.tested.done() or self.tested.exception() is not None:
            return None
        result = self.tested.result()
        return None if any(receipt.verdict is CheckResult.BROKEN for receipt in result.receipts) else result

    @property
    def failed(self) -> bool:
        """It will not land as it is."""
        return self.tested.done() and (self.result is None or not self.result.green)


class Speculation:
    """The speculative batches of one project, for the length of one land job."""

    def __init__(self, context: Context, queue: MergeQueue) -> None:
        self._context = context
        self._queue = queue
        self._lock = threading.Lock()
        self._ahead: list[_SpeculativeBatch] = []
        """Each on top of the one before."""
        self._closed = threading.Event()
        """Set when nothing more may be put on top of the batch in test."""
        self._started = 0.0
        """When the last test started, that of the batch itself or a speculative one."""

    def next(self, project: ProjectContext) -> tuple[Ticket, ...]:
        """The batch that is tested on the present target; empty where there is none."""
        if not self._ahead:
            return ()
        first = self._ahead[0]
        now = as_they_are(self._context, first.batch) if first.base == project.target else ()
        if not now:
            self.give_up()
        return now

    def give_up(self) -> None:
        """Cancel all speculative tests: the commit that they are based on does not land."""
        with self._lock:
            self._closed.set()
            useless, self._ahead = self._ahead, []
        self._cancel(useless)

    @contextlib.contextmanager
    def while_testing(
        self, project: ProjectContext, tip: str, taken: Collection[int]
    ) -> Iterator[CheckedCommit | None]:
        """While the chain up to `tip` is tested, put other changes on top, without the `taken` tickets.

        Yields the result of a speculative test of `tip` itself, after waiting for its end; None where there was none.
        """
        early = self._started_test(tip)
        settings = project.config.landing
        if settings.speculate and settings.checks_at_once > 1 and not settings.by_pull_request:
            args = (project, tip, taken, self._closed)
            threading.Thread(target=self._build, args=args, name="speculation", daemon=True).start()
        closed = self._closed
        try:
            if early is not None:
                # An error there shows again when the commit is tested again.
                with contextlib.suppress(Exception):
                    early.tested.result()
            yield None if early is None else early.result
        finally:
            closed.set()

    def _started_test(self, tip: str) -> _SpeculativeBatch | None:
        """The speculative test of this very commit, if there is one; then those above it stay."""
        if not self._ahead or self._ahead[0].tip != tip:
            self.give_up()
        with self._lock:
            self._closed = threading.Event()
            if self._ahead:
                return self._ahead.pop(0)
            self._started = time.monotonic()
            return None

    def _build(self, project: ProjectContext, tip: str, taken: Collection[int], closed: threading.Event) -> None:
        try:
            interval = self._interval(project)
            while not closed.wait(_POLL):
                self._drop_cancelled()
                with self._lock:
                    above = tuple(self._ahead)
                in_test = 1 + sum(1 for ahead in above if not ahead.tested.done())
                if in_test >= project.config.landing.checks_at_once or any(ahead.failed for ahead in above):
                    continue
                busy = {*taken, *(ticket.id for ahead in above for ticket in ahead.batch)}
                waiting, more_to_come = self._waiting(project, busy)
                if waiting and (not more_to_come or time.monotonic() - self._started >= interval):
                    self._put_on_top(project, above[-1].tip if above else tip, waiting, closed)
        except LegionError as trouble:
            log.debug("speculation ends: %s", trouble)
        except Exception as trouble:  # the batch itself is tested and lands without it
            log.error("speculation failed, the next batch tries again: %s", trouble, exc_info=trouble)

    def _drop_cancelled(self) -> None:
        """Forget a batch of which a ticket was stopped, and those on top of it."""
        with self._lock:
            place = next((place for place, ahead in enumerate(self._ahead) if ahead.cancel.cancelled), None)
            useless = [] if place is None else self._ahead[place:]
            self._ahead = self._ahead[:place]
        self._cancel(useless)

    def _cancel(self, useless: Sequence[_SpeculativeBatch]) -> None:
        self._context.live.queue.notes.remove(ticket.id for ahead in useless for ticket in ahead.batch)
        cancel_all(ahead.cancel for ahead in useless)

    def _interval(self, project: ProjectContext) -> float:
        """Seconds between two starts while other tickets are about to arrive: then the slots end one after the
        other.
        """
        tree = project.hub.tree_of(project.target)
        with self._context.store.read() as tx:
            known = receipts.for_tree(tx, project.id, tree)
        usual = {one.command: one.duration for one in known if one.verdict is CheckResult.GREEN}
        length = sum(usual.get(check.command, 0.0) for check in project.config.checks)
        return length / project.config.landing.checks_at_once

    def _waiting(self, project: ProjectContext, taken: Collection[int]) -> tuple[tuple[Ticket, ...], bool]:
        """The next batch of tickets that are in no test yet, and whether more are about to arrive."""
        with self._context.store.read() as tx:
            live = tickets.live(tx, project=project.id)
            free = [ticket for ticket in live if ticket.id not in taken]
            more_to_come = any(ticket.state in _ABOUT_TO_ARRIVE for ticket in live)
            return self._queue.first(project, tx, free), more_to_come

    def _put_on_top(
        self, project: ProjectContext, base: str, waiting: Sequence[Ticket], closed: threading.Event
    ) -> None:
        batch: list[Ticket] = []
        at = base
        for ticket in waiting:
            merged = candidate(self._context, project, at, ticket)
            if isinstance(merged, MergeCandidate):
                batch.append(ticket)
                at = merged.commit
        if not batch:
            return
        ahead = _SpeculativeBatch(base=base, batch=tuple(batch), tip=at, cancel=CancelToken(), tested=Future())
        with self._lock:
            if closed.is_set():
                return
            self._ahead.append(ahead)
            self._started = time.monotonic()
            notes = dict.fromkeys((ticket.id for ticket in batch), "in test on top of others")
            self._context.live.queue.notes.update(notes)
        threading.Thread(target=self._test, args=(project, ahead), name="ahead", daemon=True).start()

    def _test(self, project: ProjectContext, ahead: _SpeculativeBatch) -> None:
        try:
            wanted = candidates.of_batch(self._context, project, ahead.batch, ahead.base, ahead.tip)
            test = shown(self._context, project, QueueTestKind.AHEAD, ahead.batch, ahead.tip, wanted)
            with cancelling(self._context, ahead.batch, ahead.cancel), test:
                tested = execution.test_unless_cancelled(self._context, project, ahead.tip, wanted, ahead.cancel)
            ahead.tested.set_result(tested)
        except Exception as trouble:  # the batch is tested again when its turn comes, and the error shows there
            ahead.tested.set_exception(trouble)
