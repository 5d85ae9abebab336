"""What stands behind a ticket's change, for its page: what was found in it."""

from __future__ import annotations

from legion.domain.tickets import Ticket
from legion.jobs import permission
from legion.jobs.world import Workshop
from legion.wire.tickets import WeakeningLine


def weakened(shop: Workshop, ticket: Ticket) -> list[WeakeningLine]:
    """Signs that its change makes tests weaker, whether or not it was allowed to touch them."""
    if ticket.change is None or shop.project.removed_at is not None:
        return []
    return [
        WeakeningLine(sign=one.sign.value, path=one.path, line=one.line, words=one.words)
        for one in permission.found_weak(shop, ticket, ticket.change)
    ]
