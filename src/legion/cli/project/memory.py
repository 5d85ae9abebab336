"""`legion note remember`, `memories` and `forget`: what agents of this project should know."""

from __future__ import annotations

from legion.cli.base.command import CommandCall
from legion.cli.base.output import numbers
from legion.cli.base.row_command import row_command
from legion.client.text.rows import Column, Columns, Row, listing, row
from legion.client.text.terminal import Colour, clock
from legion.wire.notes import Memories, NoteLine, NoteRows

_REMEMBER = "legion note remember 'Run make generate after every change of schema.sql' --files 'db/**'"


def _say_left_out(call: CommandCall, found: Memories) -> None:
    if found.left_out and not call.json:
        call.say(
            f"Note: no briefing has room for {numbers(found.left_out)}: newer ones take the 2,400 characters. `legion "
            "forget N` makes room; with --files or --label a memory goes only where it is needed."
        )


def _origin(one: NoteLine) -> str:
    origin = f"ticket {one.ticket}" if one.ticket is not None else "you"
    return f"{f'lesson of {origin}' if one.lesson else origin}, {clock(one.created_at)}"


_MEMORY: Columns[NoteLine] = (
    Column("id", lambda one: str(one.id), Colour.BOLD, keeps=True),
    Column("origin", _origin, Colour.DIM),
    Column("for", lambda one: ", ".join([*one.files, *one.labels]), Colour.CYAN),
    Column("text", lambda one: one.text),
)


def _rows(found: Memories, width: int) -> list[Row]:
    return listing(_MEMORY, found.memories, width) or [row("Nothing is remembered: legion note remember TEXT")]


def _ids(made: Memories) -> list[str]:
    return [f"Memory ID: {one.id}" for one in made.memories]


remember = row_command("remember", NoteRows.remember, _REMEMBER, says=_ids, then=_say_left_out)
memories = row_command("memories", NoteRows.memories, "legion note memories", shows=_rows, then=_say_left_out)
forget = row_command("forget", NoteRows.forget, "legion note forget 3")
