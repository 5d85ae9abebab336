"""The train: while a batch is tested, the next ones are built on top of it and tested beside it.

All that it leaves are receipts. If a batch lands whole, the one above it stands on exactly the commit that it was
tested on, and its receipts are there already; if not, the tests above it are given up, and their room is free for the
search. So it can be wrong about the future, but never about what lands.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from legion.domain.checks import CheckResult
from legion.domain.errors import LegionError
from legion.domain.tickets.ticket import State, Ticket
from legion.git.merge.candidates import MergeCandidate
from legion.jobs.checks import execution, held_out
from legion.jobs.checks.candidates import candidate
from legion.jobs.checks.execution import CheckedCommit
from legion.jobs.context import Context, ProjectContext
from legion.jobs.landing.queue import MergeQueue
from legion.jobs.workspace.cancellation import CancelToken
from legion.store.board import receipts, tickets

log = logging.getLogger(__name__)

_GLANCE = 0.2
"""Seconds between two looks at who has arrived."""

_COMING = frozenset({State.WORKING, State.CHECKING})


@dataclass(frozen=True, kw_only=True)
class _SpeculativeBatch:
    """A batch that stands on a tip which has not landed yet."""

    base: str
    batch: tuple[Ticket, ...]
    tip: str
    need: CancelToken
    tested: Future[CheckedCommit]

    @property
    def told(self) -> CheckedCommit | None:
        """What its checks said; None while they run, and where they could not be run."""
        if not self.tested.done() or self.tested.exception() is not None:
            return None
        told = self.tested.result()
        return None if any(receipt.verdict is CheckResult.BROKEN for receipt in told.receipts) else told

    @property
    def lost(self) -> bool:
        """It is known already that it will not land as it is."""
        return self.tested.done() and (self.told is None or not self.told.green)


class Speculation:
    """One project's, for as long as its land job runs."""

    def __init__(self, context: Context, queue: MergeQueue) -> None:
        self._context = context
        self._queue = queue
        self._lock = threading.Lock()
        self._ahead: list[_SpeculativeBatch] = []
        """Each on top of the one before."""
        self._over = threading.Event()
        """Nothing more is put on top of the batch that is in test."""
        self._started = 0.0
        """When the last test began, the batch's own or one ahead."""

    def next(self, project_context: ProjectContext) -> tuple[Ticket, ...]:
        """The batch that is tested on the target as it is now; empty where there is none."""
        if not self._ahead:
            return ()
        first = self._ahead[0]
        now = self._unchanged(first.batch) if first.base == project_context.target else ()
        if not now:
            self.give_up()
        return now

    def give_up(self) -> None:
        """What the tests ahead stand on does not land."""
        with self._lock:
            self._over.set()
            useless, self._ahead = self._ahead, []
        for ahead in useless:
            ahead.need.end()
            for ticket in ahead.batch:
                self._context.aboard.pop(ticket.id, None)

    @contextlib.contextmanager
    def below(
        self, project_context: ProjectContext, tip: str, aboard: Collection[int]
    ) -> Iterator[CheckedCommit | None]:
        """While the chain up to `tip` is tested, others are put on top. What was begun of that test is waited for, and
        given to whoever goes on with it."""
        begun = self._begun(tip)
        if project_context.config.landing.speculate and project_context.config.landing.checks_at_once > 1:
            args = (project_context, tip, aboard, self._over)
            threading.Thread(target=self._build, args=args, name="train", daemon=True).start()
        over = self._over
        try:
            if begun is not None:
                # What went wrong there shows when it is tested again.
                with contextlib.suppress(Exception):
                    begun.tested.result()
            yield None if begun is None else begun.told
        finally:
            over.set()

    def _begun(self, tip: str) -> _SpeculativeBatch | None:
        """The test of this very commit, if one is under way; then those above it stay."""
        if not self._ahead or self._ahead[0].tip != tip:
            self.give_up()
        with self._lock:
            self._over = threading.Event()
            if self._ahead:
                return self._ahead.pop(0)
            self._started = time.monotonic()
            return None

    def _unchanged(self, batch: Sequence[Ticket]) -> tuple[Ticket, ...]:
        """All of them as they are now, or nobody where one of them is not what it was."""
        ids = [ticket.id for ticket in batch]
        with self._context.store.read() as tx:
            if len(tickets.states_of(tx, ids)) < len(ids):
                return ()
            now = tickets.get_many(tx, ids)
        same = all(one.version == other.version for one, other in zip(now, batch, strict=True))
        return now if same else ()

    def _build(self, project_context: ProjectContext, tip: str, aboard: Collection[int], over: threading.Event) -> None:
        try:
            pace = self._pace(project_context)
            while not over.wait(_GLANCE):
                with self._lock:
                    above = tuple(self._ahead)
                in_test = 1 + sum(1 for ahead in above if not ahead.tested.done())
                if in_test >= project_context.config.landing.checks_at_once or any(ahead.lost for ahead in above):
                    continue
                taken = {*aboard, *(ticket.id for ahead in above for ticket in ahead.batch)}
                waiting, coming = self._waiting(project_context, taken)
                if waiting and (not coming or time.monotonic() - self._started >= pace):
                    self._put_on_top(project_context, above[-1].tip if above else tip, waiting, over)
        except LegionError as trouble:
            log.debug("nothing more is built ahead: %s", trouble)

    def _pace(self, project_context: ProjectContext) -> float:
        """Seconds between two beginnings while others are about to arrive: as many as let all the slots end in turn."""
        tree = project_context.hub.tree_of(project_context.target)
        with self._context.store.read() as tx:
            known = receipts.for_tree(tx, project_context.project.id, tree)
        usual = {one.command: one.duration for one in known if one.verdict is CheckResult.GREEN}
        length = sum(usual.get(check.command, 0.0) for check in project_context.config.checks)
        return length / project_context.config.landing.checks_at_once

    def _waiting(self, project_context: ProjectContext, taken: Collection[int]) -> tuple[tuple[Ticket, ...], bool]:
        """Who waits and is in no test yet, and whether more are about to arrive."""
        with self._context.store.read() as tx:
            live = tickets.live(tx, project=project_context.project.id)
            free = [ticket for ticket in live if ticket.id not in taken]
            coming = any(ticket.state in _COMING for ticket in live)
            return self._queue.first(project_context, tx, free), coming

    def _put_on_top(
        self, project_context: ProjectContext, base: str, waiting: Sequence[Ticket], over: threading.Event
    ) -> None:
        batch: list[Ticket] = []
        at = base
        for ticket in waiting:
            merged = candidate(self._context, project_context, at, ticket)
            if isinstance(merged, MergeCandidate):
                batch.append(ticket)
                at = merged.commit
        if not batch:
            return
        ahead = _SpeculativeBatch(base=base, batch=tuple(batch), tip=at, need=CancelToken(), tested=Future())
        with self._lock:
            if over.is_set():
                return
            self._ahead.append(ahead)
            self._started = time.monotonic()
            self._context.aboard |= dict.fromkeys((ticket.id for ticket in batch), "in test on top of others")
        threading.Thread(target=self._test, args=(project_context, ahead), name="ahead", daemon=True).start()

    def _test(self, project_context: ProjectContext, ahead: _SpeculativeBatch) -> None:
        try:
            wanted = held_out.of_batch(self._context, project_context, ahead.batch)
            ahead.tested.set_result(
                execution.while_needed(self._context, project_context, ahead.tip, wanted, ahead.need)
            )
        except Exception as trouble:  # whoever waits for it tests again and tells
            ahead.tested.set_exception(trouble)
