"""`legion land`, `legion status queue` and `legion try`: what waits to land, and trying it out before that."""

from __future__ import annotations

import subprocess
import time

import click

from legion.cli.base.command import CommandCall, command, group
from legion.cli.base.output import sanitize
from legion.cli.base.parameters import TICKET, TICKETS, ticket_argument
from legion.cli.base.row_command import row_command
from legion.cli.base.texts import read_text
from legion.client.text.rows import Column, Columns, Row, listing, row
from legion.client.text.terminal import Colour, count, duration
from legion.wire.board import BoardRows, MergeQueuePage, QueueLine, TriedChanges, TryChanges
from legion.wire.tickets import Action, TicketRows

_COLOURS = {"gate": Colour.YELLOW, "held": Colour.DIM}
_NOT_STARTED = 127


land = row_command("land", TicketRows.land, "legion land 12")


def _place(one: QueueLine) -> str:
    return str(one.place) if one.place else one.state


_CHANGE: Columns[QueueLine] = (
    Column("place", _place, lambda one: _COLOURS.get(one.state, Colour.BOLD), keeps=True),
    Column("ticket", lambda one: f"#{one.ticket}", keeps=True),
    Column("title", lambda one: one.title),
    Column("size", lambda one: count(one.lines, "line") if one.place else "", Colour.DIM),
    Column("waits", lambda one: f"for {duration(time.time() - one.since)}", Colour.DIM),
    Column("doing", lambda one: one.doing, Colour.DIM),
)


def _rows(page: MergeQueuePage, width: int) -> list[Row]:
    if not page.changes:
        return [row("The merge queue is empty.")]
    waiting = count(len(page.changes), "change waits", "changes wait")
    return [row(f"{waiting} to land."), *listing(_CHANGE, page.changes, width, indent=2)]


@command("reject", example="legion status queue reject 12 'Keep the old API working.'")
@ticket_argument
@click.argument("text", metavar="[TEXT]", default="")
def reject(call: CommandCall, id: int, text: str) -> None:
    """Send a change back to its agent, with your text. - reads TEXT from stdin."""
    call.report(call.legion().bounce(id, Action(feedback=read_text(text, "TEXT") if text else "")))


_MOVE = "legion status queue move 12 first\nlegion status queue move 12 9"
_HOLD = "Keep a change out of the queue until `legion land N` or `legion resume N`."
_list = row_command("list", BoardRows.merge_queue, "legion status queue list", shows=_rows)
queue = group(
    "queue",
    "The merge queue: what lands next.",
    "legion status queue\nlegion status queue move 12 first\nlegion status queue hold 12",
    _list,
    row_command("move", BoardRows.move_in_queue, _MOVE),
    row_command("hold", TicketRows.pause_ticket, "legion status queue hold 12", help=_HOLD),
    reject,
    alone=_list,
)


@command("try", example="legion try 12\nlegion try 12 --with 9,10 --run 'make serve'\nlegion try")
@click.argument("id", metavar="[N]", type=TICKET, required=False)
@click.option("--with", "others", multiple=True, type=TICKETS, metavar="N,N", help="With these changes, too.")
@click.option(
    "--run", "program", metavar="CMD", help="Run this shell command there, as you; its exit code is returned."
)
def try_changes(call: CommandCall, id: int | None, others: tuple[tuple[int, ...], ...], program: str | None) -> int:
    """Open a tree with a change on top of the target, before it lands. Your checkout is not touched.

    Without N: tomorrow's tree, the target with all green changes that have not landed. A command of --run runs outside
    the sandbox, with your rights: look at the change first.
    """
    numbers = [*([id] if id is not None else []), *(one for some in others for one in some)]
    found = call.legion().try_changes(TryChanges(cwd=call.cwd, tickets=list(dict.fromkeys(numbers))))
    call.notes(f"ticket {number} is left out: {why}" for number, why in found.left_out.items())
    if program is None:
        call.answer(found, lambda: [found.path])
        call.say(sanitize(found.message))
        return 0
    call.say(sanitize(found.message))
    return _run(call, found, program)


def _run(call: CommandCall, found: TriedChanges, program: str) -> int:
    try:
        code = subprocess.run(["/bin/sh", "-c", program], cwd=found.path, check=False).returncode
    except OSError as trouble:
        call.say(f"The command could not be started: {trouble}")
        return _NOT_STARTED
    return code if code >= 0 else 128 - code
