"""`legion config workers` and `legion config retries`: how much runs, without a commit."""

from __future__ import annotations

import click

from legion.cli.base.command import CommandCall, command
from legion.wire.controls import SetNumbers


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
