"""Opens a shell in a ticket's worktree, inside the sandbox that its agent has."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from pathlib import Path

from legion.domain.errors import NotFound, StateConflict
from legion.domain.runs import ticket_seat
from legion.drivers import Program, registry
from legion.drivers.terminal_options import TerminalOptions
from legion.jobs.board import Board
from legion.jobs.context import Context
from legion.jobs.workspace import sandbox
from legion.runner import launch
from legion.runner.spec import TERMINAL_SOCKET, RunSpec, read_spec, write_spec
from legion.service.tickets.actions import get_ticket
from legion.store.work import runs
from legion.wire.terminal import OpenShell, OpenTerminal

_PATIENCE = 20.0
_GRACE = 2.0
_LEFT = 20.0
"""Seconds without a viewer after which a shell ends: a person's terminal may be gone without notice, or its page is
loaded again."""
_SHELLS = ("bash", "sh")
_NAME = re.compile(r"shell-[0-9]+-[0-9]+-[0-9a-f]+")
"""Of a shell's run."""


def shell(context: Context, ticket_id: int, wanted: OpenShell) -> OpenTerminal:
    """Raises StateConflict where the ticket has no worktree."""
    with context.store.read() as tx:
        ticket = get_ticket(tx, ticket_id)
        last = runs.latest(tx, ticket_id)
    project = context.project(ticket.project)
    tree = project.worktrees.path(ticket_seat(ticket_id))
    if last is not None and last.ended_at is None and last.machine not in ("", context.machine):
        raise StateConflict(
            f"Ticket {ticket_id} works on machine {last.machine}, and its worktree is there: `legion diff {ticket_id}` "
            "shows what has arrived of it."
        )
    if not tree.is_dir():
        raise StateConflict(
            f"Ticket {ticket_id} is {ticket.state.value} and has no worktree: `legion diff {ticket_id}` shows its "
            "change, `legion checkout` makes a branch of it."
        )
    message = f"A shell in the worktree of ticket {ticket_id}; exit or Ctrl-D ends it."
    if (known := _still_open(context, ticket_id, wanted.run)) is not None:
        return opened(known, message)
    state = project.agents / ticket_seat(ticket_id)
    seen = (tree, *((state,) if state.is_dir() else ()))
    env = {
        "LEGION_TICKET": str(ticket_id),
        "LEGION_ATTEMPT": str(last.attempt if last is not None else 0),
        "TERM": wanted.term or "xterm-256color",
        "PS1": f"ticket {ticket_id} \\w$ ",
    }
    run_dir = context.data.runs / f"shell-{ticket.project}-{time.time_ns()}-{os.urandom(3).hex()}"
    write_spec(
        run_dir,
        RunSpec(
            run=run_dir.name,
            program=Program(argv=_argv(), cwd=tree, env=sandbox.environment(context, project, env), terminal=True),
            driver=registry.TERMINAL,
            options=TerminalOptions(columns=wanted.columns, rows=wanted.rows, leave_after=_LEFT).to_json(),
            sandbox=sandbox.sandbox(context, project, writable=seen),
            limits=sandbox.limits(context),
            grace=_GRACE,
        ),
    )
    context.launcher.start(run_dir)
    return opened(run_dir, message)


def _still_open(context: Board, ticket_id: int, name: str) -> Path | None:
    """The folder of the shell's run, if it is a living shell of this ticket."""
    run_dir = context.data.runs / name
    if not _NAME.fullmatch(name) or not (run_dir / TERMINAL_SOCKET).exists() or not launch.is_held(run_dir):
        return None
    return run_dir if read_spec(run_dir).program.env.get("LEGION_TICKET") == str(ticket_id) else None


def _argv() -> tuple[str, ...]:
    """The system's own shell: the person's may be where the sandbox shows nothing."""
    found = next((path for name in _SHELLS if (path := shutil.which(name, path="/usr/bin:/bin"))), "/bin/sh")
    return (found, "--norc", "-i") if found.endswith("bash") else (found, "-i")


def opened(run_dir: Path, message: str, *, wheel: bool = False) -> OpenTerminal:
    """Wait until the runner holds the terminal. Raises NotFound where the program never started."""
    with contextlib.suppress(TimeoutError):
        for _ in launch.bells(run_dir, _PATIENCE):
            if (run_dir / TERMINAL_SOCKET).exists():
                break
    if not (run_dir / TERMINAL_SOCKET).exists():
        ended = launch.settle(run_dir)
        why = ended.result.message if isinstance(ended, launch.EndedRun) else "it does not answer"
        raise NotFound(f"The terminal could not be opened ({why}): see `legion doctor`.")
    return OpenTerminal(run=run_dir.name, socket=str(run_dir / TERMINAL_SOCKET), message=message, wheel=wheel)
