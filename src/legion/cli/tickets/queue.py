"""`legion land`, `legion status queue` and `legion try`: what waits to land, and trying it out before that."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator

import click

from legion.cli.base.command import CommandCall, command, group
from legion.cli.base.output import Cell, Colour, Screen, count, duration, sanitize
from legion.cli.base.parameters import TICKET, TICKETS, ticket_argument
from legion.cli.base.texts import read_text
from legion.wire.board import MergeQueuePage, MoveInQueue, QueueLine, TriedChanges, TryChanges
from legion.wire.tickets import Action

_COLOURS = {"gate": Colour.YELLOW, "held": Colour.DIM}
_NOT_STARTED = 127


@command("land", example="legion land 12")
@ticket_argument
def land(call: CommandCall, id: int) -> None:
    """Land a change that waits for you, behind the gate of its ticket, epic or project.

    It goes through the merge queue, which tests it again where the target has moved.
    """
    call.report(call.legion().land(id))


@command("list", example="legion status queue list")
def listed(call: CommandCall) -> None:
    """What waits to land, in order, then what waits for you."""
    page = call.legion().merge_queue(call.cwd)
    call.answer(page, lambda: _lines(page, call.screen))


def _lines(page: MergeQueuePage, screen: Screen) -> Iterator[str]:
    if not page.changes:
        yield "The merge queue is empty."
        return
    yield f"{count(len(page.changes), 'change waits', 'changes wait')} to land."
    yield from screen.table([_row(one) for one in page.changes])


def _row(one: QueueLine) -> list[Cell]:
    where = str(one.place) if one.place else one.state
    size = count(one.lines, "line") if one.place else ""
    return [
        Cell(where, _COLOURS.get(one.state, Colour.BOLD)),
        Cell(f"#{one.ticket}"),
        Cell(sanitize(one.title)),
        Cell(size, Colour.DIM),
        Cell(f"for {duration(time.time() - one.since)}", Colour.DIM),
        Cell(sanitize(one.doing), Colour.DIM),
    ]


@command("move", example="legion status queue move 12 first\nlegion status queue move 12 9")
@ticket_argument
@click.argument("to", metavar="first|last|N")
def move(call: CommandCall, id: int, to: str) -> None:
    """Move a change to the front or the end of the queue, or before the change of ticket N.

    A batch that is being tested is not interrupted.
    """
    call.report(call.legion().move_in_queue(id, MoveInQueue(to=to.removeprefix("#"))))


@command("hold", example="legion status queue hold 12")
@ticket_argument
def hold(call: CommandCall, id: int) -> None:
    """Keep a change out of the queue until `legion land N` or `legion resume N`."""
    call.report(call.legion().pause_ticket(id))


@command("reject", example="legion status queue reject 12 'Keep the old API working.'")
@ticket_argument
@click.argument("text", metavar="[TEXT]", default="")
def reject(call: CommandCall, id: int, text: str) -> None:
    """Send a change back to its agent, with your text. - reads TEXT from stdin."""
    call.report(call.legion().bounce(id, Action(feedback=read_text(text, "TEXT") if text else "")))


queue = group(
    "queue",
    "The merge queue: what lands next.",
    "legion status queue\nlegion status queue move 12 first\nlegion status queue hold 12",
    listed,
    move,
    hold,
    reject,
    alone=listed,
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
