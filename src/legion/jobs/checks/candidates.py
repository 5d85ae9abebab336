"""Builds candidates: the target with a change in it. The same input gives the same commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from legion.domain.errors import NotFound
from legion.domain.forge.issues import in_commit
from legion.domain.landing.bisect import BisectProbe
from legion.domain.tickets.ticket import Ticket
from legion.git.merge import candidates
from legion.git.merge.candidates import MergeCandidate, MergeConflict
from legion.jobs.attempts import escalation
from legion.jobs.board import Board
from legion.jobs.trees import ProjectContext
from legion.jobs.workspace.save import AUTHOR
from legion.store import session_restarts


@dataclass(frozen=True, kw_only=True)
class ChainLink:
    """One link of a chain: a ticket's change, or the person's commits (no ticket), on top of all before it."""

    ticket: Ticket | None
    commit: str
    tree: str


def candidate(context: Board, project: ProjectContext, target: str, ticket: Ticket) -> MergeCandidate | MergeConflict:
    """The ticket's change on top of `target`, in the project's landing mode."""
    change = _without_former_history(context, project, target, ticket)
    if isinstance(change, MergeConflict):
        return change
    return candidates.merge(
        project.hub,
        target,
        change,
        mode=project.config.landing.mode,
        message=message(ticket),
        author=AUTHOR,
        committer=AUTHOR,
        when=int(ticket.moved_at),
        trailers=trailers(context, project, ticket),
    )


def _without_former_history(
    context: Board, project: ProjectContext, target: str, ticket: Ticket
) -> str | MergeConflict:
    """The commit of a ticket's change. If it began on something else than the target, a commit with the change alone: a
    merge would bring what another ticket has not landed, or, where the session was started again from a rewritten
    branch, the commits that the person removed.
    """
    assert ticket.change is not None, "only a ticket with a change has a candidate"
    change = ticket.change
    with context.store.read() as tx:
        restarted = session_restarts.happened(tx, project.id)
    if not (restarted or ticket.behind is not None) or project.hub.is_ancestor(change.base, target):
        return change.commit
    alone = [(change.commit, change.base)]
    made = candidates.reapply(project.hub, target, alone, committer=AUTHOR, when=int(ticket.moved_at))
    return made if isinstance(made, MergeConflict) else made.commit


def part(
    context: Board, project: ProjectContext, start: str, chain: Sequence[ChainLink], probe: BisectProbe
) -> tuple[ChainLink, ...] | None:
    """The part that a probe names, as a chain of its own: if one link is left out, those after it are merged again.

    None if they conflict without it, and for the person's commits: the batch may be tested by their settings.
    """
    if probe.without is None:
        return tuple(chain[: probe.prefix])
    if chain[probe.without].ticket is None:
        return None
    links = list(chain[: probe.without])
    for link in chain[probe.without + 1 : probe.prefix]:
        assert link.ticket is not None, "the person's commits come first"
        merged = candidate(context, project, links[-1].commit if links else start, link.ticket)
        if isinstance(merged, MergeConflict):
            return None
        links.append(replace(link, commit=merged.commit, tree=merged.tree))
    return tuple(links)


def message(ticket: Ticket) -> str:
    title = " ".join(ticket.spec.title.split())
    subject = title if len(title) <= 72 else f"{title[:71]}…"
    text = in_commit(ticket.spec.text).strip()
    body = f"{text}\n\n" if text and text != title else ""
    return f"{subject}\n\n{body}"


def trailers(context: Board, project: ProjectContext, ticket: Ticket) -> dict[str, str]:
    """Facts for programs that read a landed commit."""
    undoes = {"Undoes": str(ticket.spec.undoes)} if ticket.spec.undoes is not None else {}
    return {
        "Ticket": str(ticket.id),
        "Agent": _agent(context, project, ticket),
        "Attempts": str(ticket.attempt),
        **undoes,
    }


def _agent(context: Board, project: ProjectContext, ticket: Ticket) -> str:
    """The author of the change: the driver, with the model if the ticket names one."""
    spec = ticket.spec
    if spec.undoes is not None:
        return "legion"
    if spec.command:
        return "command"
    driver = escalation.driver(context, ticket) or spec.driver
    try:
        name = context.user.driver_name(driver, project.config.agents.driver)
    except NotFound:
        # It was removed from the settings since.
        name = driver or "unknown"
    return f"{name} ({spec.model})" if spec.model else name
