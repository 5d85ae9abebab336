"""Commands that act on tickets: stop, drop, rewind, undo, pause, resume."""

from __future__ import annotations

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.parameters import TICKET, TICKET_OR_ALL
from legion.cli.base.row_command import row_command
from legion.wire.errors import BadInput
from legion.wire.projects import Where
from legion.wire.tickets import Action, TicketRows

_REWIND = """\
legion rewind 12 --to 31:48
legion rewind 12 --to 31 --feedback 'Leave the parser alone.'"""


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


rewind = row_command("rewind", TicketRows.rewind, _REWIND)
undo = row_command("undo", TicketRows.undo, "legion undo 12")


def _refuse_both(id: int | None, everything: bool) -> None:
    if id is not None and everything:
        raise BadInput("Name a ticket or give --all, not both.")


@command("pause", example="legion pause\nlegion pause 12\nlegion pause --all")
@click.argument("id", metavar="[N]", type=TICKET, required=False)
@click.option("--all", "everything", is_flag=True, help="Stop every agent of every project at once.")
def pause(call: CommandCall, id: int | None, everything: bool) -> None:
    """Start nothing new in this project, or hold one ticket.

    With --all every agent of every project stops at once, and nothing starts until `legion resume --all`. Their work is
    kept, and no attempt is counted. Checks and landings that have started end by themselves.
    """
    _refuse_both(id, everything)
    legion = call.legion()
    if everything:
        call.report(legion.freeze())
    else:
        call.report(legion.pause(Where(cwd=call.cwd)) if id is None else legion.pause_ticket(id))


@command("resume", example="legion resume\nlegion resume 12\nlegion resume --all")
@click.argument("id", metavar="[N]", type=TICKET, required=False)
@click.option("--all", "everything", is_flag=True, help="What `legion pause --all` stopped.")
def resume(call: CommandCall, id: int | None, everything: bool) -> None:
    """Resume after a pause: the project, one ticket, or everything."""
    _refuse_both(id, everything)
    legion = call.legion()
    if everything:
        call.report(legion.thaw())
    else:
        call.report(legion.resume(Where(cwd=call.cwd)) if id is None else legion.resume_ticket(id))
