"""`legion attach new`, `checkout` and `push`: work with an agent by hand, and take its work into your repository."""

from __future__ import annotations

from typing import Any

import click

from legion.cli.attach.relay import AttachTarget, opened, refuse_elsewhere, sit_down
from legion.cli.base.command import CommandCall, command
from legion.cli.base.row_command import described_by, filled, row_command
from legion.wire.terminal import NewByHand, TerminalRows


@described_by(NewByHand)
@command(
    "new",
    example="legion attach new 'Tidy the parser'\nlegion attach new try-it --program 'aider --model sonnet' --detach",
)
@click.option("--detach", is_flag=True, help="Do not attach to it now.")
def new(call: CommandCall, detach: bool, **given: Any) -> int:
    """Open an agent in a worktree of its own, and work with it in your terminal; Ctrl-Q leaves it running.

    Nothing is checked until `legion agents submit N`. `legion pause N` saves its tree and ends the program, and
    `legion resume N` continues the conversation.
    """
    if not detach:
        refuse_elsewhere()
    wanted = filled(NewByHand, given, call.cwd)
    made = call.legion().new_by_hand(wanted)
    (ticket,) = made.ids
    if detach:
        call.answer(made, lambda: [f"Ticket {ticket} opens: `legion attach {ticket}`."])
        call.notes(made.notes)
        return 0
    call.notes(made.notes)
    return sit_down(call, ticket, opened(call, AttachTarget.of_ticket(ticket), only_looks=False), only_looks=False)


_CHECKOUT = "legion checkout 12\nlegion checkout 12 --branch try-it"
_PUSH = "legion checkout push 12\nlegion checkout push 12 --remote fork"
checkout = row_command("checkout", TerminalRows.checkout, _CHECKOUT, only=("branch",))
push = row_command("push", TerminalRows.push, _PUSH)
