"""Offers a proven change to the project's forge instead of moving the target: its ticket waits there.

The target follows when the forge has merged the change (`jobs/forge`).
"""

from __future__ import annotations

from collections.abc import Sequence

from legion.domain.forge.connections import ForgeKind, TicketPull
from legion.domain.forge.issues import ticket_branch
from legion.domain.forge.pulls import PullStage
from legion.domain.tickets.ticket import Park, ParkReason
from legion.jobs.board import Board
from legion.jobs.checks.candidates import ChainLink
from legion.jobs.trees import ProjectContext
from legion.store.board import forges, tickets
from legion.system import crash
from legion.system.crash import Point

WAITS = "its change passed all checks and waits to be merged at the forge: see `legion status pr {}`"

NO_PULLS = (
    'its change passed all checks, but `landing.target` is "pr" and no forge with pull requests is there: run `legion '
    "forge add github OWNER/REPO`, or set another target and run `legion resume {}`"
)


def offer(context: Board, project: ProjectContext, start: str, chain: Sequence[ChainLink]) -> bool:
    """False where a person moved one of the tickets meanwhile."""
    links = [(link, link.ticket) for link in chain if link.ticket is not None]
    for link, ticket in links:
        project.hub.keep(f"offered/{ticket.id}", link.commit)
    with context.store.write() as tx:
        if any(tickets.get(tx, ticket.id).version != ticket.version for _, ticket in links):
            return False
        forge = forges.of_project(tx, project.id)
        waits = WAITS if forge is not None and forge.kind is ForgeKind.GITHUB else NO_PULLS
        for link, ticket in links:
            claim = forges.claim_of_ticket(tx, ticket.id)
            offered = TicketPull(
                ticket=ticket.id,
                project=project.id,
                stage=PullStage.OFFERED,
                branch=claim.branch if claim is not None else ticket_branch(ticket.id),
                base=start,
                tested=link.commit,
            )
            forges.offer(tx, offered)
            tickets.move(tx, ticket.id, Park(ParkReason.OUTSIDE, waits.format(ticket.id)))
    crash.reach(Point.FORGE_AFTER_OFFER)
    return True
