"""Removes all ended tickets of a project from the board at once."""

from __future__ import annotations

from legion.domain.errors import Retryable, StateConflict
from legion.domain.text import count
from legion.jobs.context import Context
from legion.service.projects import registry
from legion.service.tickets.dispatch import drop
from legion.store.board import tickets
from legion.wire.tickets import Acted

_ALL = 1_000_000


def drop_ended(context: Context, cwd: str) -> Acted:
    """Newest first, so that what comes after a ticket goes before it. A ticket that others wait for stays."""
    project = registry.find(context, cwd)
    with context.store.read() as tx:
        ended = sorted((ticket.id for ticket in tickets.recent(tx, project.id, limit=_ALL)), reverse=True)
    kept: list[int] = []
    for id in ended:
        try:
            drop(context, id)
        except (StateConflict, Retryable):
            kept.append(id)
    dropped = sorted(set(ended) - set(kept))
    message = f"{count(len(dropped), 'ended ticket is', 'ended tickets are')} off the board."
    if kept:
        message += f" Still needed or being stopped: {', '.join(str(id) for id in sorted(kept))}."
    return Acted(tickets=dropped, message=message)
