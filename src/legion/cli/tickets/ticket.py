"""`legion ticket N`: everything about one ticket; and `legion review`."""

from __future__ import annotations

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.parameters import ticket_argument
from legion.client.text.ticket_page import page_rows


@command("ticket", example="legion ticket 12")
@ticket_argument
@click.option("--full", is_flag=True, help="Cut nothing: complete texts, all attempts, the complete history.")
def ticket(call: CommandCall, id: int, full: bool) -> None:
    """Show everything about one ticket: text, state, attempts, receipts, history."""
    call.show(call.legion().ticket(id), lambda page, width: page_rows(page, width, full=full))


@command("review", example="legion review 12")
@ticket_argument
def review(call: CommandCall, id: int) -> None:
    """Have an independent reviewer read the change of a ticket, whatever the project's policy is.

    A ticket that is about to land waits for the verdict; a landed ticket stays landed.
    """
    call.report(call.legion().review(id))
