"""`legion attach`: the terminal of an agent, or its conversation."""

from __future__ import annotations

import click

from legion.cli.attach.relay import opened, refuse_elsewhere, sit_down
from legion.cli.base.command import CommandCall, command
from legion.cli.base.parameters import AGENT_OR_TICKET
from legion.cli.tickets.log import watch_ticket
from legion.wire.errors import BadInput


@command("attach", example="legion attach 12\nlegion attach 12 --read")
@click.argument("id", metavar="N", type=AGENT_OR_TICKET)
@click.option("--read", "only_looks", is_flag=True, help="Only look: nothing is interrupted and no key is sent.")
def attach(call: CommandCall, id: int | str, only_looks: bool) -> int:
    """Sit down at the terminal of a ticket's agent; Ctrl-Q leaves.

    An agent that works alone is interrupted between two steps, and its conversation opens in the program's own form, in
    the same worktree and sandbox. When you leave, it works on alone, with what was said.
    """
    if isinstance(id, str):
        raise BadInput(f"Standing agents have no terminal: `legion tell {id} MESSAGE` talks to it.")
    if not only_looks:
        refuse_elsewhere()
    found = opened(call.legion(), id, only_looks=only_looks)
    if not found.socket:
        call.say(found.message)
        return watch_ticket(call, id)
    refuse_elsewhere()
    return sit_down(call, id, found, only_looks=only_looks)
