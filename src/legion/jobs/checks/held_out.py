"""Checks besides a change's own proofs: held-out acceptance, and proofs of landed tickets, which stay.

Held-out acceptance: the person's own commands, stored outside every worktree and never shown to an agent.

They run only in the merge queue, on the built result. A red one reports its name and no more: an agent could satisfy
what it can read without doing the work.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection
from pathlib import Path

from legion.config.sections.evidence import Acceptance, AcceptanceNetwork
from legion.domain.checks import HELD_OUT, Check
from legion.domain.landing import definitions
from legion.domain.tickets.ticket import Park, ParkReason, Ticket
from legion.jobs.attempts import feedback
from legion.jobs.board import Board
from legion.jobs.checks import execution
from legion.jobs.checks.execution import WantedCheck
from legion.jobs.trees import ProjectContext
from legion.store.board import receipts, tickets


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
