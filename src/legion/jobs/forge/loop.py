"""Repeats the pass over every project's forge: after events of the project, after a webhook, and every minute."""

from __future__ import annotations

import logging
import time

from legion.domain.errors import LegionError
from legion.domain.forge.connections import ForgeConnection
from legion.jobs.forge.clients import BoardActions
from legion.jobs.forge.clients import hurried as hurried_now
from legion.jobs.forge.sync import sync
from legion.jobs.loop import BackgroundLoop
from legion.jobs.trees import Trees
from legion.store import events
from legion.store.board import forges, projects
from legion.store.database.transactions import ReadTransaction

log = logging.getLogger(__name__)

_EVERY = 60.0
_REST = 1.0
"""Seconds between two passes, so that a burst of events costs one."""


class ForgeLoop(BackgroundLoop):
    def __init__(self, context: Trees, actions: BoardActions, *, every: float = _EVERY) -> None:
        super().__init__(context, "forge")
        self._actions = actions
        self._every = every
        self._seen = 0
        self._due: dict[int, float] = {}
        """By project: when the next pass is due, on the monotonic clock."""

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
        with self.context.store.read() as tx:
            newest, there = events.last(tx), forges.all(tx)
            happened = _parents(tx, events.concerned(tx, self._seen))
        self._seen = newest
        now = time.monotonic()
        hurried = hurried_now(self.context)
        self._due = {one.project: self._due.get(one.project, 0.0) for one in there}
        ready = [one for one in there if self._due[one.project] <= now or one.project in happened | hurried]
        return [one for one in ready if one.wait_until is None or one.wait_until <= self.context.clock()]

    def _visit(self, one: ForgeConnection) -> None:
        self._due[one.project] = time.monotonic() + self._every
        try:
            sync(self.context, one.project, self._actions)
        except LegionError as trouble:
            log.warning("the look at %s failed, will retry: %s", one.name, trouble)
        except Exception:  # the next pass may work, and no other part looks at the forge
            log.exception("the look at %s failed, will retry", one.name)


def _parents(tx: ReadTransaction, happened: frozenset[int | None]) -> frozenset[int | None]:
    """With the default session of each: what lands on the branch of an epic concerns the forge of the project."""
    known = projects.all(tx)
    common = {one.common_dir for one in known if one.id in happened and one.session}
    return happened | {one.id for one in known if one.common_dir in common and not one.session}
