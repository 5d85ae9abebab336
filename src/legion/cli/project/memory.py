"""`legion note remember`, `memories` and `forget`: what agents of this project should know."""

from __future__ import annotations

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import Cell, Colour, Screen, clock, numbers, sanitize
from legion.cli.base.parameters import BIGGEST, TICKET
from legion.cli.base.texts import read_text
from legion.wire.notes import AddNote, CloseNote, Memories, NoteLine


@command(
    "remember", example="legion note remember 'Run make generate after every change of schema.sql' --files 'db/**'"
)
@click.argument("text", metavar="TEXT")
@click.option("--files", metavar="GLOB", multiple=True, help="Only for tickets that declare such files.")
@click.option("--label", "labels", metavar="NAME", multiple=True, help="Only for tickets with this label.")
@click.option("--ticket", metavar="N", type=TICKET, help="The ticket that taught it.")
@click.option("--pin", is_flag=True, help="First in every briefing that it is for.")
def remember(
    call: CommandCall, text: str, files: tuple[str, ...], labels: tuple[str, ...], ticket: int | None, pin: bool
) -> None:
    """Remember something that agents of this project should know; - reads it from stdin.

    The briefing of a ticket carries the memories that fit its files and labels, up to 2,400 characters.
    """
    wanted = AddNote(
        cwd=call.cwd,
        text=read_text(text, "TEXT"),
        files=list(files),
        labels=list(labels),
        ticket=ticket,
        pinned=pin,
    )
    made = call.legion().remember(wanted)
    call.answer(made, lambda: [f"Memory ID: {one.id}" for one in made.memories])
    _say_left_out(call, made)


@command("memories", example="legion note memories")
def memories(call: CommandCall) -> None:
    """What agents of this project should know, and where each memory came from."""
    found = call.legion().memories(call.cwd)
    call.answer(found, lambda: _list(found, call.screen))
    _say_left_out(call, found)


@command("forget", example="legion note forget 3")
@click.argument("id", metavar="N", type=click.IntRange(1, BIGGEST))
def forget(call: CommandCall, id: int) -> None:
    """Forget a memory; briefings no longer carry it."""
    done = call.legion().forget(id, CloseNote(cwd=call.cwd))
    call.answer(done, lambda: [sanitize(done.message)])


def _say_left_out(call: CommandCall, found: Memories) -> None:
    if found.left_out and not call.json:
        call.say(
            f"Note: no briefing has room for {numbers(found.left_out)}: newer ones take the 2,400 characters. `legion "
            "forget N` makes room; with --files or --label a memory goes only where it is needed."
        )


def _list(found: Memories, screen: Screen) -> list[str]:
    if not found.memories:
        return ["Nothing is remembered: legion note remember TEXT"]
    return screen.table([_row(one) for one in found.memories], indent=0)


def _row(one: NoteLine) -> list[Cell]:
    scope = ", ".join([*one.files, *one.labels])
    origin = f"ticket {one.ticket}" if one.ticket is not None else "you"
    origin = f"lesson of {origin}" if one.lesson else origin
    return [
        Cell(str(one.id), Colour.BOLD),
        Cell(f"{origin}, {clock(one.created_at)}", Colour.DIM),
        Cell(sanitize(scope), Colour.CYAN),
        Cell(sanitize(one.text)),
    ]
