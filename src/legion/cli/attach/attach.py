"""`legion attach` and its parts: the terminal or conversation of an agent, work by hand, conversations handed over."""

from __future__ import annotations

import os
import re
import shlex
import sys
from typing import Any

import click

from legion.cli.attach.relay import LOST, AttachTarget, opened, refuse_elsewhere, sit_down, sit_down_with_agent
from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import sanitize
from legion.cli.base.parameters import AGENT_OR_TICKET, ticket_argument
from legion.cli.base.row_command import described_by, filled, row_command
from legion.cli.tickets.log import watch_ticket
from legion.client.legion import Legion
from legion.client.terminal import How, relay, window_size
from legion.wire.conversations import Adopted, ConversationRows
from legion.wire.errors import LegionError, NotFound, StateConflict
from legion.wire.terminal import NewByHand, OpenShell, TerminalRows

_RUN = re.compile(r"run-?(\d{1,15})")


@command("attach", example="legion attach 12\nlegion attach 12 --read\nlegion attach tess")
@click.argument("id", metavar="N", type=AGENT_OR_TICKET)
@click.option("--read", "only_looks", is_flag=True, help="Only look: nothing is interrupted and no key is sent.")
def attach(call: CommandCall, id: int | str, only_looks: bool) -> int:
    """Sit down at the terminal of a ticket's agent, or of a standing agent; Ctrl-Q leaves. `run-34` names a run.

    An agent that works alone is interrupted between two steps, and its conversation opens in the program's own form, in
    the same worktree and sandbox. When you leave, it works on alone, with what was said.
    """
    if isinstance(id, str) and (named := _RUN.fullmatch(id)):
        id = _ticket_of(call.legion(), int(named[1]))
    if isinstance(id, str):
        refuse_elsewhere()
        return sit_down_with_agent(call, id, only_looks=only_looks)
    if not only_looks:
        refuse_elsewhere()
    found = opened(call, AttachTarget.of_ticket(id), only_looks=only_looks)
    if found is not None and not found.socket:
        call.say(found.message)
        return watch_ticket(call, id)
    refuse_elsewhere()
    return sit_down(call, id, found, only_looks=only_looks)


def _ticket_of(legion: Legion, run: int) -> int:
    """The ticket that the run works on. Raises NotFound, and StateConflict for a run that has ended."""
    lines = legion.history(None, run=run).lines
    ticket = next((line.ticket for line in lines if line.ticket is not None), None)
    if ticket is None:
        raise NotFound(f"There is no run {run} of a ticket: `legion ticket N` lists the runs of one.")
    if any(one.id == run and one.ended_at is not None for one in legion.ticket(ticket).runs):
        raise StateConflict(f"Run {run} has ended: `legion log {ticket} --run {run}` prints it.")
    return ticket


@command("shell", example="legion attach shell 12")
@ticket_argument
def shell(call: CommandCall, id: int) -> int:
    """A shell in a ticket's worktree, inside its sandbox.

    It sees what the ticket's agent sees. Ends with the exit code of the shell. A ticket whose worktree is gone is
    refused.
    """
    refuse_elsewhere()
    size = window_size(1)
    wanted = OpenShell(columns=size.columns, rows=size.rows, term=os.environ.get("TERM", ""))
    opened = call.legion().shell(id, wanted)
    # Ctrl-Q is the shell's own key here: there is nothing to return to.
    left = relay(opened.socket, message=opened.message, leaves=False)
    if left.how is How.ENDED and left.end is not None:
        return left.end.exit_code if left.end.exit_code is not None else LOST
    call.say("The shell is gone: its runner was killed.")
    return LOST


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
