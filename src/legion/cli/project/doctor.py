"""Commands about this machine and its settings: worktrees, doctor and its --rebuild, config, workers and retries."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import clock, count, progress, sanitize
from legion.cli.base.row_command import row_command
from legion.cli.project.setup import follow_trial
from legion.client.discovery import is_remote
from legion.client.http import NotRunning
from legion.client.text.catalog import doctor_rows, setting_rows, worktree_rows
from legion.wire.errors import BadInput, LegionError, NotAllowed
from legion.wire.projects import Doctor, DoctorFinding, ProjectRows, Rebuild, SetNumbers, Where


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


worktrees = row_command("worktrees", ProjectRows.worktrees, "legion status worktrees", shows=worktree_rows)


@command("doctor", example="legion doctor\nlegion doctor --try")
@click.option(
    "--try", "again", is_flag=True, help="First try the checks again: as the code is, and with an error planted in it."
)
@click.option(
    "--rebuild", "restore", is_flag=True, help="Build a lost or damaged database again from the boards in the hubs."
)
@click.option("--attack", is_flag=True, help="Only try hostile commands in the project's sandbox: what holds.")
@click.option("--yes", "sure", is_flag=True, help="Rebuild without asking.")
def doctor(call: CommandCall, again: bool, restore: bool, attack: bool, sure: bool) -> int:
    """Check this machine, the daemon and the project. Ends with 1 when something is wrong."""
    if restore:
        rebuild(call, sure)
        return 0
    if sure:
        raise click.UsageError("--yes only works with --rebuild")
    try:
        if again:
            call.use_shell(call.cwd)
            if follow_trial(call, call.cwd, again=True) is None:
                return 0
        with progress("Checking"):
            found = call.legion().attack(Where(cwd=call.cwd)) if attack else call.legion().doctor(call.cwd)
    except NotRunning:
        raise
    except LegionError as error:
        found = Doctor(ok=False, findings=[DoctorFinding(name="daemon", ok=False, detail=error.message, advice="")])
    call.show(found, doctor_rows)
    return 0 if found.ok else LegionError.exit_code


@command("config", example="legion config --explain")
@click.option("--explain", is_flag=True, help="Also show where each setting comes from.")
def config(call: CommandCall, explain: bool) -> None:
    """Show the settings in force: yours and the project's."""
    found = call.legion().config(call.cwd)
    call.show(found, lambda found, width: setting_rows(found, width, explain=explain))


@command("workers", example="legion config workers\nlegion config workers 2")
@click.argument("number", metavar="[N]", type=int, required=False)
def workers(call: CommandCall, number: int | None) -> None:
    """How many agents of this project work at once; with N, set it now. 0: as legion.toml says.

    Agents at work are not stopped.
    """
    legion = call.legion()
    call.report(
        legion.numbers(call.cwd) if number is None else legion.set_numbers(SetNumbers(cwd=call.cwd, workers=number))
    )


@command("retries", example="legion config retries\nlegion config retries 3")
@click.argument("number", metavar="[N]", type=int, required=False)
def retries(call: CommandCall, number: int | None) -> None:
    """How often a new ticket of this project is tried; with N, set it now. 0: as legion.toml says.

    Tickets that were dispatched keep their number.
    """
    legion = call.legion()
    call.report(
        legion.numbers(call.cwd) if number is None else legion.set_numbers(SetNumbers(cwd=call.cwd, retries=number))
    )
