"""Repeats the pass over every project's forge: after events of the project, after a webhook, and every minute."""

from __future__ import annotations

import logging
import threading
import time

from legion.domain.errors import LegionError
from legion.domain.forge.connections import ForgeConnection
from legion.jobs.context import Context
from legion.jobs.forge.actions import BoardActions
from legion.jobs.forge.clients import hurried as hurried_now
from legion.jobs.forge.sync import sync
from legion.store import events
from legion.store.board import forges

log = logging.getLogger(__name__)

_EVERY = 60.0
_REST = 1.0
"""Seconds between two passes, so that a burst of events costs one."""


class ForgeLoop:
    def __init__(self, context: Context, actions: BoardActions, *, every: float = _EVERY) -> None:
        self._context = context
        self._actions = actions
        self._every = every
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._seen = 0
        self._due: dict[int, float] = {}
        """By project: when the next pass is due, on the monotonic clock."""
        self._thread = threading.Thread(target=self._repeat, name="forge", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def poke(self) -> None:
        self._wake.set()

    def stop(self) -> None:
        self._stopping.set()
        self._wake.set()

    def _repeat(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            try:
                for one in self._waiting():
                    if not self._stopping.is_set():
                        self._visit(one)
            except LegionError as trouble:
                log.warning("the look at the forges failed, will retry: %s", trouble)
            left = min(self._due.values(), default=time.monotonic() + self._every) - time.monotonic()
            self._wake.wait(max(left, 0.0))
            self._stopping.wait(_REST)

    def _waiting(self) -> list[ForgeConnection]:
        """Connections whose pass is due: its time has come, or something happened in the project."""
        with self._context.store.read() as tx:
            newest, happened, there = events.last(tx), events.concerned(tx, self._seen), forges.all(tx)
        self._seen = newest
        now = time.monotonic()
        hurried = hurried_now(self._context)
        self._due = {one.project: self._due.get(one.project, 0.0) for one in there}
        ready = [one for one in there if self._due[one.project] <= now or one.project in happened | hurried]
        return [one for one in ready if one.wait_until is None or one.wait_until <= self._context.clock()]

    def _visit(self, one: ForgeConnection) -> None:
        self._due[one.project] = time.monotonic() + self._every
        try:
            sync(self._context, one.project, self._actions)
        except LegionError as trouble:
            log.warning("the look at %s failed, will retry: %s", one.name, trouble)
        except Exception:  # the next pass may work, and no other part looks at the forge
            log.exception("the look at %s failed, will retry", one.name)
