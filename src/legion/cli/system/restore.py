"""`legion doctor --rebuild`: builds the database again from the boards in the hubs."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator

import click

from legion.cli.base.command import CommandCall
from legion.cli.base.output import clock, count, sanitize
from legion.cli.base.progress import progress
from legion.client.discovery import is_remote
from legion.wire.errors import BadInput, NotAllowed
from legion.wire.projects import Rebuild


def rebuild(call: CommandCall, sure: bool) -> None:
    """Print what would be done, ask, do it."""
    if is_remote():
        raise BadInput("LEGION_URL names a daemon that runs elsewhere; rebuild its database on its own machine.")
    # Imported by name, as in `serve`: no daemon is running, and the command line must not depend on its code.
    daemon = importlib.import_module("legion.daemon.restore")
    with progress("Reading the hubs"):
        plan: Rebuild = daemon.look(call.data_dir)
    if not sure:
        for line in _plan(plan):
            call.say(line)
        if call.json or not sys.stdin.isatty():
            raise NotAllowed("Nothing is rebuilt yet; run it again with --yes to do it.")
        if not click.confirm("Rebuild it?", err=True):
            raise NotAllowed("Nothing was rebuilt.")
    with progress("Rebuilding the database"):
        done: Rebuild = daemon.rebuild(call.data_dir)
    call.answer(done, lambda: _done(done))


def _plan(plan: Rebuild) -> Iterator[str]:
    yield f"The database {sanitize(plan.database)} is {plan.condition}. These boards can be restored:"
    for board in plan.boards:
        yield f"  {sanitize(board.project)}: {count(board.tickets, 'ticket')}, as of {clock(board.at)}"
    yield f"Lost: {'; '.join(plan.lost)}. Running agents are stopped; they resume with the content of their worktrees."


def _done(done: Rebuild) -> Iterator[str]:
    listed = ", ".join(f"{sanitize(board.project)} ({count(board.tickets, 'ticket')})" for board in done.boards)
    yield f"Rebuilt: {listed}."
    if done.landed:
        are = "is" if done.landed == 1 else "are"
        yield f"{count(done.landed, 'ticket')} had landed after the last copy was made, and {are} done."
    if done.resumed:
        resume, their = ("resumes", "its worktree") if done.resumed == 1 else ("resume", "their worktrees")
        yield f"{count(done.resumed, 'ticket')} {resume} with the content of {their} when Legion is up."
    if done.kept:
        yield f"The old database is kept as {sanitize(done.kept)}."
    yield f"Not restored: {'; '.join(done.lost)}."
