"""`legion tell` and `legion interrupt`: words for an agent at work."""

from __future__ import annotations

import click

from legion.cli.command import Call, command
from legion.cli.output import harmless
from legion.cli.parameters import ticket_argument
from legion.cli.progress import progress
from legion.cli.texts import given_text
from legion.wire.errors import LegionError
from legion.wire.questions import Told, Words

_WAITING = "Waiting until the agent hears it"


@command("tell", example="legion tell 12 'The table is called users, not accounts.'")
@ticket_argument
@click.argument("message", metavar="MESSAGE")
def tell(call: Call, id: int, message: str) -> int:
    """Tell the agent of a ticket something while it works; - reads the message from stdin.

    It hears it between two of its steps and goes on. Ends with 1 when the agent ended before it heard.
    """
    words = Words(text=given_text(message, "MESSAGE"))
    with progress(_WAITING):
        told = call.legion().tell(id, words)
    return _end(call, told)


@command("interrupt", example="legion interrupt 12\nlegion interrupt 12 'Stop the migration; look at the tests first.'")
@ticket_argument
@click.argument("message", metavar="[MESSAGE]", default="")
def interrupt(call: Call, id: int, message: str) -> int:
    """Interrupt the agent of a ticket in the middle of its step, as Ctrl-C does.

    With a message it goes on with that; without one the ticket is paused. Its conversation is kept either way.
    """
    words = Words(text=given_text(message, "MESSAGE"))
    with progress(_WAITING):
        told = call.legion().interrupt(id, words)
    return _end(call, told)


def _end(call: Call, told: Told) -> int:
    call.answer(told, lambda: [harmless(told.message)])
    return LegionError.exit_code if told.heard is False else 0
