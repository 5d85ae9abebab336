"""`legion agents claim` and `submit`: standing agents that take tickets from the board."""

from __future__ import annotations

import os

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.parameters import TICKET
from legion.cli.base.texts import valid_text
from legion.wire.agents import ClaimTicket, SubmitTicket


@command("claim", example="legion agents claim")
@click.argument("ticket", metavar="[N]", type=TICKET, required=False)
def claim(call: CommandCall, ticket: int | None) -> None:
    """For a standing agent, in its own shell: take the next ready ticket from the board, or ticket N.

    The agent's next turn starts with the briefing, in a tree at the landed code.
    """
    call.report(call.legion().claim(ClaimTicket(ticket=ticket or 0, request=os.urandom(16).hex())))


@command("submit", example="legion agents submit 12\nlegion agents submit")
@click.argument("ticket", metavar="[N]", type=TICKET, required=False)
@click.option("--let-go", is_flag=True, help="Give the ticket back to the board instead.")
@click.option("--why", metavar="WHY", default="", help="With --let-go: what the next agent should know.")
def submit(call: CommandCall, ticket: int | None, let_go: bool, why: str) -> None:
    """Submit the change of a ticket that you work on yourself: it is checked, reviewed and landed as any other.

    Without N, for a standing agent, in its own shell: submit its folder at the end of this turn as its ticket's change.
    """
    if ticket is not None:
        call.report(call.legion().submit_ticket(ticket))
        return
    wanted = SubmitTicket(let_go=let_go, why=valid_text(why, "--why"), request=os.urandom(16).hex())
    call.report(call.legion().submit(wanted))
