"""`legion machine list|log|pause|resume|drain|update|remove`: the machines of this head, and steering one."""

from __future__ import annotations

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.parameters import completes
from legion.client.text.machines import log_rows, rows
from legion.wire.machines import RemoveMachine

names = completes(lambda legion: ((one.name, "") for one in legion.machines().machines if not one.head))


_NAME = click.argument("name", metavar="NAME", shell_complete=names)


@command("list", example="legion machine list\nlegion machine list --json")
def machines(call: CommandCall) -> None:
    """List the head and its machines: state, runs and slots, labels, release, and when each was heard.

    Only a machine that is ready starts new runs. What a machine runs continues in every state but silent.
    """
    found = call.legion().machines()
    call.show(found, rows)


@command("log", example="legion machine log desk\nlegion machine log desk -n 200")
@_NAME
@click.option("-n", "limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="How many runs.")
def log(call: CommandCall, name: str, limit: int) -> None:
    """Show the runs that a machine was given, newest last, and why one was taken from it.

    `legion log N` shows the output of a run, wherever it is. The worker's own messages are on its host.
    """
    found = call.legion().machine_log(name, limit=limit)
    call.show(found, log_rows)


@command("pause", example="legion machine pause desk")
@_NAME
def pause(call: CommandCall, name: str) -> None:
    """Start nothing new on a machine. What it runs continues."""
    call.report(call.legion().pause_machine(name))


@command("resume", example="legion machine resume desk")
@_NAME
def resume(call: CommandCall, name: str) -> None:
    """Give a machine that was paused or drained work again."""
    call.report(call.legion().resume_machine(name))


@command("drain", example="legion machine drain desk")
@_NAME
def drain(call: CommandCall, name: str) -> None:
    """Start nothing new on a machine that is to be removed or updated; `legion machine list` shows when it is empty."""
    call.report(call.legion().drain_machine(name))


@command("update", example="legion machine update desk")
@_NAME
def update(call: CommandCall, name: str) -> None:
    """Have a machine's worker start again, as the release that is installed there. Its runs continue.

    Install the release on that machine first, for example with `uv tool upgrade legionary`.
    """
    call.report(call.legion().update_machine(name))


@command("remove", example="legion machine remove desk\nlegion machine remove stolen-laptop --yes")
@_NAME
@click.option("--yes", is_flag=True, help="Also while it has runs; work there that is not saved yet is not fetched.")
def remove(call: CommandCall, name: str, yes: bool) -> None:
    """Remove a machine. Its token opens nothing from that moment on, and its runs start again elsewhere."""
    call.report(call.legion().remove_machine(name, RemoveMachine(yes=yes)))
