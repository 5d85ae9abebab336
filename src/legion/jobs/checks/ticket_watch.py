"""Cancels a test as soon as one of its tickets was stopped, paused or moved: the result would be void."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator, Sequence

from legion.domain.tickets.ticket import Ticket
from legion.jobs.board import Board
from legion.jobs.workspace.command import CancelToken, cancel_all
from legion.store.board import tickets

log = logging.getLogger(__name__)


def as_they_are(context: Board, batch: Sequence[Ticket]) -> tuple[Ticket, ...]:
    """All of the tickets as they are now; empty where one of them has changed."""
    ids = [ticket.id for ticket in batch]
    with context.store.read() as tx:
        if len(tickets.states_of(tx, ids)) < len(ids):
            return ()
        now = tickets.get_many(tx, ids)
    same = all(one.version == other.version for one, other in zip(now, batch, strict=True))
    return now if same else ()


@contextlib.contextmanager
def cancelling(context: Board, batch: Sequence[Ticket], cancel: CancelToken) -> Iterator[None]:
    """Within the block, the token is cancelled when one of the tickets changes."""
    over = threading.Event()
    with context.store.commits() as committed:

        def watch() -> None:
            try:
                while not over.is_set():
                    committed.clear()
                    if not as_they_are(context, batch):
                        cancel_all([cancel])
                        return
                    committed.wait()
            except Exception as trouble:  # the test ends by itself, and its result is compared with the tickets then
                log.warning("a test does not end early where a ticket of it is stopped: %s", trouble)

        if batch:
            threading.Thread(target=watch, name="ticket-watch", daemon=True).start()
        try:
            yield
        finally:
            over.set()
            committed.set()
