"""Candidates, which are the target with a change in it, and the checks besides the change's own proofs.

Held-out acceptance: the person's own commands, stored outside every worktree and never shown to an agent.

They run only in the merge queue, on the built result. A red one reports its name and no more: an agent could satisfy
what it can read without doing the work.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from legion.config.sections.evidence import Acceptance, AcceptanceNetwork
from legion.domain.agents.teams import RolePart
from legion.domain.checks import HELD_OUT, Check
from legion.domain.errors import NotFound
from legion.domain.events import EventKind
from legion.domain.forge.issues import in_commit
from legion.domain.landing import definitions
from legion.domain.landing.queue import BisectProbe
from legion.domain.review import protected_files
from legion.domain.review.path_patterns import matches
from legion.domain.tickets.ladder import next_try_after_conflict
from legion.domain.tickets.spec import StartPoint
from legion.domain.tickets.ticket import AlreadyThere, Change, Fail, Park, ParkReason, Ticket, TryAgain
from legion.git.hub.objects import write_commit
from legion.git.merge import candidates
from legion.git.merge.candidates import MergeCandidate, MergeConflict
from legion.jobs.agent import teams
from legion.jobs.attempts import escalation, feedback
from legion.jobs.board import Board
from legion.jobs.checks import execution
from legion.jobs.checks.execution import WantedCheck
from legion.jobs.trees import ProjectContext, Trees
from legion.jobs.workspace.save import AUTHOR
from legion.store import events, session_restarts
from legion.store.board import receipts, tickets


@dataclass(frozen=True, kw_only=True)
class ChainLink:
    """One link of a chain: a ticket's change, or the person's commits (no ticket), on top of all before it."""

    ticket: Ticket | None
    commit: str
    tree: str


def candidate(
    context: Board, project: ProjectContext, target: str, ticket: Ticket, *, by_definition: bool = False
) -> MergeCandidate | MergeConflict:
    """The ticket's change on top of `target`, in the project's landing mode. `by_definition`: where lines conflict, if
    the project wants that, and something checks the result.
    """
    settings = project.config
    tries = by_definition and settings.conflicts.by_definition and bool(ticket.spec.proofs or settings.checks)

    def may(path: str) -> bool:
        guarded = protected_files.guarded(settings.protected.paths, [check.command for check in settings.checks])
        return not matches(path, guarded, any_case=True)

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
        by_definition=may if tries else None,
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
    """Facts for programs that read a landed commit. Those that do not hold are named, too: no text may claim them."""
    maker = teams.maker(context, project, ticket)
    return {
        "Ticket": str(ticket.id),
        "Agent": _agent(context, project, ticket),
        "Attempts": str(ticket.attempt),
        "Resolved-By": maker.role.name if maker.part is RolePart.RESOLVE else "",
        "Undoes": "" if ticket.spec.undoes is None else str(ticket.spec.undoes),
        candidates.MERGED: "",
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


def wanted(context: Board, ticket: Ticket) -> tuple[WantedCheck, ...]:
    """The acceptance of the ticket, as far as the person's settings still have it."""
    known = context.user.acceptance
    return tuple(
        WantedCheck(check=_check(name, known[name]), ticket=ticket.id)
        for name in ticket.spec.acceptance
        if name in known
    )


def of_batch(
    context: Board, project: ProjectContext, batch: Collection[Ticket], base: str, tip: str
) -> tuple[WantedCheck, ...]:
    """The project's checks that the way from base to tip needs, and the proofs and acceptance of each ticket."""
    own = [(*execution.proofs(ticket.id, ticket.spec.proofs), *wanted(context, ticket)) for ticket in batch]
    shared = (WantedCheck(check=check) for check in execution.needed_checks(project, base, tip))
    return (*kept(context, project, batch, base, tip), *shared, *(one for some in own for one in some))


_MOST_KEPT = 50


def kept(
    context: Board, project: ProjectContext, batch: Collection[Ticket], base: str, tip: str
) -> tuple[WantedCheck, ...]:
    """Proofs of landed tickets that changed what now changes between base and tip, as far as their seconds go."""
    left = project.config.conflicts.keep_proofs
    ends = {other for ticket in batch for other in (*ticket.spec.retires, ticket.spec.undoes)}
    with context.store.read() as tx:
        known = [one for one in tickets.with_proofs(tx, project.id) if one.id not in ends] if left else []
    if not known:
        return ()
    claims = feedback.touched(project, base, tip)
    near = {one.id: shared for one in known if any(shared := definitions.nearness(claims, one.claims))}
    first = sorted((one for one in known if one.id in near), key=lambda one: near[one.id], reverse=True)[:_MOST_KEPT]
    with context.store.read() as tx:
        took = {one.command: one.duration for ticket in first for one in receipts.of_ticket(tx, ticket.id)}
    found: list[WantedCheck] = []
    for want in (want for one in first for want in execution.proofs(one.id, one.spec.proofs)):
        if took.get(want.check.command, 0.0) <= left:
            left -= took.get(want.check.command, 0.0)
            found.append(want)
    return tuple(found)


def waits(context: Board, ticket: Ticket) -> Park | None:
    """A ticket whose acceptance was removed from the settings must not land without it."""
    gone = [name for name in ticket.spec.acceptance if name not in context.user.acceptance]
    if not gone:
        return None
    return Park(
        ParkReason.PAUSED,
        f"your settings no longer have [acceptance.{gone[0]}]: add it, then `legion resume {ticket.id}`",
    )


def _check(name: str, one: Acceptance) -> Check:
    return Check(
        name=f"{HELD_OUT}{name}",
        # Receipts are stored by this text: it changes with the content of the acceptance, and reveals nothing of it.
        command=f"{HELD_OUT}{name} {_digest(one)}",
        timeout=one.timeout,
        runs=one.run,
        folder=str(one.folder) if one.folder else "",
        offline=one.network is AcceptanceNetwork.NONE,
    )


def _digest(one: Acceptance) -> str:
    digest = hashlib.sha256(one.run.encode("utf-8", "surrogateescape"))
    if one.folder is not None:
        for folder, names, files in os.walk(one.folder):
            names.sort()
            for file in sorted(files):
                path = Path(folder, file)
                facts = path.lstat()
                content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
                facts_text = f"\0{path.relative_to(one.folder)}\0{facts.st_mode}\0{len(content)}\0"
                digest.update(facts_text.encode("utf-8", "surrogateescape") + content)
    return digest.hexdigest()[:12]


# A ticket whose work another one brought: its own proofs were red before that one landed, and are green since.
#
# Such a ticket needs no further attempt. Its change becomes an empty one on the target, which lands like any other:
# with receipts of its proofs on exactly that commit.


def may_be_there(context: Trees, project: ProjectContext, ticket: Ticket) -> bool:
    """Whether proofs could tell: all of its criteria have one, and another ticket landed since it was dispatched."""
    return proofs_may_tell(project, ticket) and bool(landed_since(context, ticket))


def proofs_may_tell(project: ProjectContext, ticket: Ticket) -> bool:
    settings = project.config
    return settings.conflicts.already_there and not settings.landing.by_pull_request and ticket.spec.provable


def landed_since(context: Trees, ticket: Ticket) -> list[tuple[int, str, str]]:
    """What landed since it was dispatched, in order: ticket, commit, and the commit before that."""
    with context.store.read() as tx:
        told = events.since(tx, ticket.project, EventKind.LANDED, ticket.created_at)
    rows = [(one.ticket, one.data.get("commit"), one.data.get("before")) for one in told]
    return [(a, b, c) for a, b, c in rows if a is not None and isinstance(b, str) and isinstance(c, str)]


def brought_by(context: Trees, project: ProjectContext, ticket: Ticket, other: int) -> AlreadyThere:
    target = project.target
    stamp = AUTHOR.stamp(int(context.clock()))
    words = f"Already there: brought by ticket {other}"
    tree = project.hub.tree_of(target)
    made = write_commit(project.hub, tree=tree, parents=(target,), author=stamp, committer=stamp, message=words)
    project.hub.keep(f"wip/{ticket.id}/there-{ticket.attempt}", made)
    return AlreadyThere(Change(base=target, commit=made), f"ticket {other} brought it: its proofs are green since then")


def sent_back_for_conflict(
    context: Trees, project: ProjectContext, ticket: Ticket, target: str, conflict: MergeConflict
) -> TryAgain | Fail:
    named = ", ".join(file.path for file in conflict.files[:3])
    why = f"it conflicts with what landed meanwhile ({named})"
    report, lost = feedback.both_sides(context, project, ticket, target, conflict, landed_since(context, ticket))
    return next_try_after_conflict(ticket, why, report, StartPoint(base=target, tree=conflict.tree, lost=lost))
