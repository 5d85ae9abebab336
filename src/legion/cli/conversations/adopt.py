"""`legion attach adopt` and `legion attach own`: between your terminal and the squad."""

from __future__ import annotations

import os
import shlex
import sys

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import sanitize
from legion.cli.base.parameters import teams, ticket_argument
from legion.cli.base.texts import read_text
from legion.wire.conversations import AdoptConversation
from legion.wire.errors import LegionError


@command(
    "adopt", example="legion attach adopt\nlegion attach adopt 3f2a90c1 -t 'Finish the login form' 'Add tests, too.'"
)
@click.argument("conversation", metavar="[SESSION]", default="")
@click.argument("text", metavar="[TEXT]", default="")
@click.option("-t", "--title", metavar="TITLE", default="", help="Default: the title of the conversation.")
@click.option("--team", metavar="NAME", default="", shell_complete=teams, help="The team that works on it.")
def adopt(call: CommandCall, conversation: str, text: str, title: str, team: str) -> None:
    """Make a ticket of a conversation of your own Claude Code; it continues in the squad.

    SESSION is the start of its id; without it, the last conversation in this project. The conversation is copied, and
    the files of your checkout, committed or not, are what the ticket starts from. Your checkout stays as it is.
    """
    wanted = AdoptConversation(
        cwd=call.cwd,
        id=conversation,
        title=title,
        text=read_text(text, "TEXT") if text else "",
        team=team,
    )
    made = call.legion().adopt(wanted)
    call.answer(made, lambda: [f"Ticket ID: {made.ticket}", sanitize(made.message)])
    call.notes(made.notes)


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
