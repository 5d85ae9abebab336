"""`legion machine pause|resume|drain|update|remove`: steer one machine."""

from __future__ import annotations

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.texts import valid_text
from legion.cli.machines.listing import names
from legion.wire.machine_pages import RemoveMachine


@command("pause", example="legion machine pause desk")
@click.argument("name", metavar="NAME", shell_complete=names)
def pause(call: CommandCall, name: str) -> None:
    """Start nothing new on a machine. What it runs continues."""
    call.report(call.legion().pause_machine(valid_text(name, "NAME")))


@command("resume", example="legion machine resume desk")
@click.argument("name", metavar="NAME", shell_complete=names)
def resume(call: CommandCall, name: str) -> None:
    """Give a machine that was paused or drained work again."""
    call.report(call.legion().resume_machine(valid_text(name, "NAME")))


@command("drain", example="legion machine drain desk")
@click.argument("name", metavar="NAME", shell_complete=names)
def drain(call: CommandCall, name: str) -> None:
    """Start nothing new on a machine that is to be removed or updated; `legion machine list` shows when it is empty."""
    call.report(call.legion().drain_machine(valid_text(name, "NAME")))


@command("update", example="legion machine update desk")
@click.argument("name", metavar="NAME", shell_complete=names)
def update(call: CommandCall, name: str) -> None:
    """Have a machine's worker start again, as the release that is installed there. Its runs continue.

    Install the release on that machine first, for example with `uv tool upgrade legionary`.
    """
    call.report(call.legion().update_machine(valid_text(name, "NAME")))


@command("remove", example="legion machine remove desk\nlegion machine remove stolen-laptop --yes")
@click.argument("name", metavar="NAME", shell_complete=names)
@click.option("--yes", is_flag=True, help="Also while it has runs; work there that is not saved yet is not fetched.")
def remove(call: CommandCall, name: str, yes: bool) -> None:
    """Remove a machine. Its token opens nothing from that moment on, and its runs start again elsewhere."""
    call.report(call.legion().remove_machine(valid_text(name, "NAME"), RemoveMachine(yes=yes)))
