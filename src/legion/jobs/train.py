"""The train: while a batch is tested, the next one is built on top of it and tested beside it.

All that it leaves are receipts. If the first batch lands whole, the second stands on exactly the commit that it was
tested on, and its receipts are there already; if not, they are about a tree that nobody asks for. So it can be wrong
about the future, but never about what lands.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from legion.domain import landing
from legion.domain.errors import LegionError
from legion.domain.tickets import State, Ticket
from legion.git.merging import Candidate
from legion.jobs import acceptance, checking
from legion.jobs.candidates import candidate
from legion.jobs.checking import Tested, Wanted
from legion.jobs.world import Workshop, World
from legion.store import tickets

log = logging.getLogger(__name__)

_GLANCE = 0.2
"""Seconds between two looks at who has arrived; those that are the same twice in a row are built on."""


@dataclass(frozen=True, kw_only=True)
class _Ahead:
    """A batch that stands on a tip which has not landed yet."""

    base: str
    batch: tuple[Ticket, ...]
    tip: str
    tested: Future[Tested]


class Train:
    """One project's, for as long as its land job runs."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._ahead: _Ahead | None = None

    def next(self, shop: Workshop) -> tuple[Ticket, ...]:
        """The batch that was tested on the target as it is now; empty where there is none, or where it is red."""
        ahead = self._ahead
        if ahead is None or ahead.base != shop.target:
            return ()
        if ahead.tested.done() and (ahead.tested.exception() is not None or not ahead.tested.result().green):
            return ()
        with self._world.store.read() as tx:
            there = tickets.states_of(tx, [ticket.id for ticket in ahead.batch])
            if len(there) < len(ahead.batch):
                return ()
            now = tickets.get_many(tx, [ticket.id for ticket in ahead.batch])
        same = all(one.version == other.version for one, other in zip(now, ahead.batch, strict=True))
        return now if same else ()

    def join(self, commit: str) -> None:
        """Where this very commit is being tested ahead of time, wait for it: its receipts are there then."""
        ahead = self._ahead
        if ahead is not None and ahead.tip == commit:
            # What went wrong there shows when it is tested again.
            with contextlib.suppress(Exception):
                ahead.tested.result()

    @contextlib.contextmanager
    def building(self, shop: Workshop, tip: str, aboard: Collection[int]) -> Iterator[None]:
        """While the chain up to `tip` is tested, look out for others and put them on top."""
        over = threading.Event()
        if shop.config.landing.speculate and shop.config.landing.checks_at_once > 1:
            args = (shop, tip, aboard, over)
            threading.Thread(target=self._build, args=args, name="train", daemon=True).start()
        try:
            yield
        finally:
            over.set()

    def _build(self, shop: Workshop, tip: str, aboard: Collection[int], over: threading.Event) -> None:
        before: tuple[int, ...] = ()
        busy = self._ahead
        while not over.wait(_GLANCE):
            if busy is not None and busy.tip != tip and not busy.tested.done():
                # What was built on something that did not land: one useless test at a time is enough.
                continue
            try:
                waiting = self._waiting(shop, aboard)
                arrived = tuple(ticket.id for ticket in waiting)
                if arrived and arrived == before:
                    self._test(shop, tip, waiting)
                    return
                before = arrived
            except LegionError as trouble:
                log.debug("the next batch is not built ahead: %s", trouble)
                return

    def _waiting(self, shop: Workshop, aboard: Collection[int]) -> tuple[Ticket, ...]:
        with self._world.store.read() as tx:
            live = tickets.live(tx, project=shop.project.id)
            free = [ticket for ticket in live if ticket.state is State.LANDING and ticket.id not in aboard]
            first = landing.order(free, shop.config.landing.batch)
            return tickets.get_many(tx, [ticket.id for ticket in first])

    def _test(self, shop: Workshop, tip: str, waiting: Sequence[Ticket]) -> None:
        batch: list[Ticket] = []
        at = tip
        for ticket in waiting:
            merged = candidate(self._world, shop, at, ticket)
            if isinstance(merged, Candidate):
                batch.append(ticket)
                at = merged.commit
        if not batch:
            return
        tested: Future[Tested] = Future()
        self._ahead = _Ahead(base=tip, batch=tuple(batch), tip=at, tested=tested)
        wanted: list[Wanted] = list(checking.project_checks(shop))
        for ticket in batch:
            wanted += checking.proofs(ticket.id, ticket.wish.proofs)
            wanted += acceptance.wanted(self._world, ticket)
        try:
            tested.set_result(checking.test(self._world, shop, at, wanted))
        except Exception as trouble:  # whoever waits for it tests again and tells
            tested.set_exception(trouble)
