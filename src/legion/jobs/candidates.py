"""Candidates: what the target would be with a change in it. The same input gives the same commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from legion.config.user import CLAUDE
from legion.domain.errors import NotFound
from legion.domain.landing import Probe
from legion.domain.tickets import Ticket
from legion.git import merging
from legion.git.merging import Candidate, Conflict
from legion.jobs.saving import AUTHOR
from legion.jobs.target import Link
from legion.jobs.world import Workshop, World


def candidate(world: World, shop: Workshop, target: str, ticket: Ticket) -> Candidate | Conflict:
    """The ticket's change on top of `target`, in the project's landing mode."""
    assert ticket.change is not None, "only a ticket with a change has a candidate"
    return merging.merge(
        shop.hub,
        target,
        ticket.change.commit,
        mode=shop.config.landing.mode,
        message=message(ticket),
        author=AUTHOR,
        committer=AUTHOR,
        when=int(ticket.moved_at),
        trailers=trailers(world, shop, ticket),
    )


def part(world: World, shop: Workshop, start: str, chain: Sequence[Link], probe: Probe) -> tuple[Link, ...] | None:
    """What a probe asks for, as a chain of its own: where one is left out, those behind it are merged anew.

    None where they do not fit without it, and for the person's commits: the batch may be judged by their settings.
    """
    if probe.without is None:
        return tuple(chain[: probe.prefix])
    if chain[probe.without].ticket is None:
        return None
    links = list(chain[: probe.without])
    for link in chain[probe.without + 1 : probe.prefix]:
        assert link.ticket is not None, "the person's commits come first"
        merged = candidate(world, shop, links[-1].commit if links else start, link.ticket)
        if isinstance(merged, Conflict):
            return None
        links.append(replace(link, commit=merged.commit, tree=merged.tree))
    return tuple(links)


def message(ticket: Ticket) -> str:
    title = " ".join(ticket.wish.title.split())
    subject = title if len(title) <= 72 else f"{title[:71]}…"
    body = f"{ticket.wish.text.strip()}\n\n" if ticket.wish.text.strip() and ticket.wish.text.strip() != title else ""
    return f"{subject}\n\n{body}"


def trailers(world: World, shop: Workshop, ticket: Ticket) -> dict[str, str]:
    """What programs read in a landed commit."""
    undoes = {"Undoes": str(ticket.wish.undoes)} if ticket.wish.undoes is not None else {}
    return {"Ticket": str(ticket.id), "Agent": _agent(world, shop, ticket), "Attempts": str(ticket.attempt), **undoes}


def _agent(world: World, shop: Workshop, ticket: Ticket) -> str:
    """Who made the change: the driver, with the model where the ticket names one."""
    wish = ticket.wish
    if wish.undoes is not None:
        return "legion"
    if wish.command:
        return "command"
    try:
        driver = world.user.driver(wish.driver, shop.config.agents.driver)
        name = driver.name if driver is not None else CLAUDE
    except NotFound:
        # It was taken out of the settings since.
        name = wish.driver or "unknown"
    return f"{name} ({wish.model})" if wish.model else name
