"""Commands that act on tickets: stop, drop, rewind, undo, pause, resume."""

from __future__ import annotations

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.parameters import TICKET, TICKET_OR_ALL, ticket_argument
from legion.cli.base.texts import read_text
from legion.wire.errors import BadInput
from legion.wire.projects import Where
from legion.wire.tickets import Action, RewindTo


@command("stop", example="legion stop 12 13\nlegion stop all")
@click.argument("which", metavar="N...|all", type=TICKET_OR_ALL, nargs=-1, required=True)
def stop(call: CommandCall, which: tuple[int | None, ...]) -> None:
    """Stop tickets, or all of this project's that have not ended.

    Their agents' work is kept; `legion retry N` starts one again.
    """
    legion = call.legion()
    numbers = [one for one in which if one is not None]
    if len(numbers) == len(which):
        call.report_each(numbers, lambda id: legion.stop(id, Action()))
    elif numbers:
        raise BadInput("Name tickets, or all: `legion stop 12 13` or `legion stop all`.")
    else:
        call.report(legion.stop_all(Where(cwd=call.cwd)))


@command("drop", example="legion drop 12 13\nlegion drop --ended")
@click.argument("ids", metavar="[N]...", type=TICKET, nargs=-1)
@click.option("--ended", is_flag=True, help="Every ticket of this project that is done, failed or stopped.")
def drop(call: CommandCall, ids: tuple[int, ...], ended: bool) -> None:
    """Remove tickets from the board for good, or all that have ended.

    Their files stay in the trash for a while; what landed stays landed.
    """
    if ended == bool(ids):
        raise BadInput("Name tickets, or all that have ended: `legion drop N` or `legion drop --ended`.")
    legion = call.legion()
    if ended:
        call.report(legion.drop_ended(Where(cwd=call.cwd)))
    else:
        call.report_each(ids, legion.drop)


@command("rewind", example="legion rewind 12 --to 31:48\nlegion rewind 12 --to 31 --feedback 'Leave the parser alone.'")
@ticket_argument
@click.option("--to", required=True, metavar="EVENT", help="RUN:LINE or RUN, as `legion events N` shows them.")
@click.option("--feedback", default="", metavar="TEXT", help="What it should know now; - reads it from stdin.")
def rewind(call: CommandCall, id: int, to: str, feedback: str) -> None:
    """Return a ticket to an earlier moment: its files and its agent's conversation, together.

    It continues from there as the next attempt, with a fresh count. A running agent is stopped, and its work is kept:
    another rewind can undo this one. `legion undo` reverts a landed ticket.
    """
    call.report(call.legion().rewind(id, RewindTo(to=to, feedback=read_text(feedback, "--feedback"))))


@command("undo", example="legion undo 12")
@ticket_argument
def undo(call: CommandCall, id: int) -> None:
    """Revert a landed ticket by a new ticket that passes the same checks.

    No agent is needed. If later changes touch the same lines, nothing is done. An undo can be undone.
    """
    call.report(call.legion().undo(id))


@command("pause", example="legion pause\nlegion pause 12")
@click.argument("id", metavar="[N]", type=TICKET, required=False)
def pause(call: CommandCall, id: int | None) -> None:
    """Start nothing new in this project, or hold one ticket."""
    legion = call.legion()
    call.report(legion.pause(Where(cwd=call.cwd)) if id is None else legion.pause_ticket(id))


@command("resume", example="legion resume\nlegion resume 12")
@click.argument("id", metavar="[N]", type=TICKET, required=False)
def resume(call: CommandCall, id: int | None) -> None:
    """Resume after a pause: the project, or one ticket."""
    legion = call.legion()
    call.report(legion.resume(Where(cwd=call.cwd)) if id is None else legion.resume_ticket(id))
