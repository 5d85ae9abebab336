"""`legion agents`, `legion tell`, `tell all`, `tell interrupt`: standing agents, and messages to agents at work."""

from __future__ import annotations

import os

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import progress
from legion.cli.base.parameters import AGENT_OR_TICKET
from legion.cli.base.row_command import row_command
from legion.cli.base.texts import read_text
from legion.client.text.agents import rows
from legion.wire.agents import InterruptAgent
from legion.wire.errors import LegionError
from legion.wire.mail import Delivered, MailRows, MessageText, NewMessage, Sent

_WAITING = "Waiting until the agent has received it"


@command("tell", example="legion tell tess 'Look at the slow ones first.'\nlegion tell 12 'The table is called users.'")
@click.argument("id", metavar="ID", type=AGENT_OR_TICKET)
@click.argument("message", metavar="MESSAGE")
@click.option("--now", is_flag=True, help="Deliver it in the agent's current turn, between two steps.")
def tell(call: CommandCall, id: int | str, message: str, now: bool) -> int:
    """Send a message to an agent; - reads it from stdin. ID is its id, the start of it, or its name.

    An idle agent starts a turn with it; a working one receives it in its next turn, or with --now in this one. A number
    is a ticket: its agent receives it between two steps. Ends with 1 when the agent ended before it was delivered.
    """
    text = read_text(message, "MESSAGE")
    if isinstance(id, int):
        with progress(_WAITING):
            return _end(call, call.legion().tell(id, MessageText(text=text)))
    letter = NewMessage(to=id, text=text, now=now, request=os.urandom(16).hex())
    if not now:
        return _end(call, call.legion().tell_agent(letter))
    with progress(_WAITING):
        return _end(call, call.legion().tell_agent(letter))


@command(
    "interrupt",
    example="legion tell interrupt tess\nlegion tell interrupt 12 'Stop the migration; look at the tests first.'",
)
@click.argument("id", metavar="ID", type=AGENT_OR_TICKET)
@click.argument("message", metavar="[MESSAGE]", default="")
def interrupt(call: CommandCall, id: int | str, message: str) -> int:
    """Interrupt an agent in the middle of its step, as Ctrl-C does. ID is an agent or a ticket's number.

    With a message it continues with that; without one a standing agent idles, and a ticket is paused. The conversation
    is kept either way.
    """
    text = read_text(message, "MESSAGE")
    with progress(_WAITING):
        if isinstance(id, int):
            sent: Delivered | Sent = call.legion().interrupt(id, MessageText(text=text))
        else:
            sent = call.legion().interrupt_agent(InterruptAgent(id=id, text=text, request=os.urandom(16).hex()))
    return _end(call, sent)


def _end(call: CommandCall, sent: Delivered | Sent) -> int:
    call.report(sent)
    return LegionError.exit_code if sent.heard is False else 0


@command("agents", example="legion agents --tree")
@click.option("--tree", "as_tree", is_flag=True, help="As a tree: which agent reports to which.")
@click.option("--all", "with_fired", is_flag=True, help="Also agents that were fired.")
def agents(call: CommandCall, as_tree: bool, with_fired: bool) -> None:
    """List standing agents: what each is doing, and what waits for it."""
    found = call.legion().agents(with_fired)
    call.show(found, lambda found, width: rows(found, width, "`legion agents hire TASK`", tree=as_tree))


broadcast = row_command("broadcast", MailRows.broadcast, "legion tell all 'The release is on Friday.'")
