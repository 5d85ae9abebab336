"""`legion attach adopt` and `legion attach own`: between your terminal and the squad."""

from __future__ import annotations

import os
import shlex
import sys

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import sanitize
from legion.cli.base.parameters import ticket_argument
from legion.cli.base.row_command import row_command
from legion.wire.conversations import Adopted, ConversationRows
from legion.wire.errors import LegionError

_ADOPT = "legion attach adopt\nlegion attach adopt 3f2a90c1 -t 'Finish the login form' 'Add tests, too.'"


def _made(made: Adopted) -> list[str]:
    return [f"Ticket ID: {made.ticket}", made.message]


def _notes(call: CommandCall, made: Adopted) -> None:
    call.notes(made.notes)


adopt = row_command("adopt", ConversationRows.adopt, _ADOPT, says=_made, then=_notes)


@command("handoff", example="legion attach own 12\nlegion attach own 12 --print")
@ticket_argument
@click.option("--print", "only_print", is_flag=True, help="Print the command instead of running it.")
def handoff(call: CommandCall, id: int, only_print: bool) -> None:
    """Continue a ticket's conversation in your terminal, with `claude --resume` in its worktree.

    The ticket is paused first, and its agent's work is saved. `legion resume N` gives it back to the squad.
    """
    given = call.legion().handoff(id)
    line = f"cd {shlex.quote(given.folder)} && {shlex.join(given.argv)}"
    call.answer(given, lambda: [sanitize(line)])
    call.say(sanitize(given.message))
    if only_print or call.json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return
    try:
        os.chdir(given.folder)
        os.execv(given.argv[0], given.argv)
    except OSError as error:
        raise LegionError(f"{given.argv[0]} cannot be started ({error.strerror}); run the command above.") from None
