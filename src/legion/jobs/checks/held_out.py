"""Held-out acceptance: commands of the person's own that lie outside every worktree and that no agent ever hears of.

They run in the merge queue alone, as a process of their own, on the built result. A red one says its name and no more:
what an agent could read it could satisfy without doing the work.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from legion.config.sections.evidence import Acceptance
from legion.domain.checks import HELD_OUT, Check
from legion.domain.tickets.ticket import Park, ParkReason, Ticket
from legion.jobs.checks import execution
from legion.jobs.checks.execution import WantedCheck
from legion.jobs.context import Context, ProjectContext


def wanted(context: Context, ticket: Ticket) -> tuple[WantedCheck, ...]:
    """What the ticket has to pass, as far as the person's settings still have it."""
    known = context.user.acceptance
    return tuple(
        WantedCheck(check=_check(name, known[name]), ticket=ticket.id)
        for name in ticket.spec.acceptance
        if name in known
    )


def of_batch(context: Context, project_context: ProjectContext, batch: Iterable[Ticket]) -> tuple[WantedCheck, ...]:
    """The project's checks, and what each of these tickets has to pass beside them."""
    own = [(*execution.proofs(ticket.id, ticket.spec.proofs), *wanted(context, ticket)) for ticket in batch]
    return (*execution.project_checks(project_context), *(one for some in own for one in some))


def waits(context: Context, ticket: Ticket) -> Park | None:
    """A ticket whose acceptance is gone must not land without it."""
    gone = [name for name in ticket.spec.acceptance if name not in context.user.acceptance]
    if not gone:
        return None
    return Park(
        ParkReason.PAUSED,
        f"your settings have no [acceptance.{gone[0]}] any more: add it, then `legion resume {ticket.id}`",
    )


def _check(name: str, one: Acceptance) -> Check:
    return Check(
        name=f"{HELD_OUT}{name}",
        # A receipt counts for this text: it changes with whatever the acceptance is made of, and tells nothing of it.
        command=f"{HELD_OUT}{name} {_digest(one)}",
        timeout=one.timeout,
        runs=one.run,
        folder=str(one.folder) if one.folder else "",
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
                told = f"\0{path.relative_to(one.folder)}\0{facts.st_mode}\0{len(content)}\0"
                digest.update(told.encode("utf-8", "surrogateescape") + content)
    return digest.hexdigest()[:12]
