"""`legion workers`, `legion retries`, `legion freeze` and `legion thaw`: how much runs, without a commit."""

from __future__ import annotations

import click

from legion.cli.base.command import CommandCall, command
from legion.wire.controls import SetNumbers


@command("workers", example="legion workers\nlegion workers 2")
@click.argument("number", metavar="[N]", type=int, required=False)
def workers(call: CommandCall, number: int | None) -> None:
    """How many agents of this project work at once; with N, set it now. 0: as legion.toml says.

    Agents at work are not stopped.
    """
    legion = call.legion()
    call.report(
        legion.numbers(call.cwd) if number is None else legion.set_numbers(SetNumbers(cwd=call.cwd, workers=number))
    )


@command("retries", example="legion retries\nlegion retries 3")
@click.argument("number", metavar="[N]", type=int, required=False)
def retries(call: CommandCall, number: int | None) -> None:
    """How often a new ticket of this project is tried; with N, set it now. 0: as legion.toml says.

    Tickets that were dispatched keep their number.
    """
    legion = call.legion()
    call.report(
        legion.numbers(call.cwd) if number is None else legion.set_numbers(SetNumbers(cwd=call.cwd, retries=number))
    )


@command("freeze", example="legion freeze")
def freeze(call: CommandCall) -> None:
    """Stop every agent of every project at once. Their work is kept, and no attempt is counted.

    Nothing starts until `legion thaw`. Checks and landings that have started end by themselves.
    """
    call.report(call.legion().freeze())


@command("thaw", example="legion thaw")
def thaw(call: CommandCall) -> None:
    """Resume what `legion freeze` stopped."""
    call.report(call.legion().thaw())
