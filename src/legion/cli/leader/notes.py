"""`legion note` and its parts: decisions, promises and threads; what agents should know; lessons of failures."""

from __future__ import annotations

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import numbers
from legion.cli.base.parameters import TICKET
from legion.cli.base.row_command import filled, row_command
from legion.cli.base.texts import read_text
from legion.client.text.rows import Column, Columns, Row, listing, row
from legion.client.text.terminal import Colour, clock
from legion.wire.errors import BadInput
from legion.wire.notes import AddNote, CloseNote, Lessons, Memories, NoteLine, NoteRows, Notes

_EXAMPLE = """\
legion note
legion note add 'We stay on Python 3.11.'
legion note add --kind promise 'The login is done on Friday.' --ticket 12
legion note close 3 'It is.'"""
_REMEMBER = "legion note remember 'Run make generate after every change of schema.sql' --files 'db/**'"
_COLOURS = {"promise": Colour.YELLOW, "thread": Colour.CYAN}
_KINDS = ("decision", "promise", "thread", "fact")


def _text(one: NoteLine) -> str:
    about = f"#{one.ticket} " if one.ticket is not None else ""
    end = f" (closed{f': {one.outcome}' if one.outcome else ''})" if one.closed_at is not None else ""
    return f"{about}{one.text}{end}"


def _origin(one: NoteLine) -> str:
    origin = f"ticket {one.ticket}" if one.ticket is not None else "you"
    return f"{f'lesson of {origin}' if one.lesson else origin}, {clock(one.created_at)}"


_ID = Column[NoteLine]("id", lambda one: str(one.id), Colour.BOLD, keeps=True)
_SCOPE = Column[NoteLine]("for", lambda one: ", ".join([*one.files, *one.labels]), Colour.CYAN)
_NOTE: Columns[NoteLine] = (
    _ID,
    Column("kind", lambda one: one.kind, lambda one: _COLOURS.get(one.kind, Colour.NONE), keeps=True),
    Column("author", lambda one: f"{one.author}, {clock(one.created_at)}", Colour.DIM),
    Column("text", _text),
)
_MEMORY: Columns[NoteLine] = (_ID, Column("origin", _origin, Colour.DIM), _SCOPE, Column("text", lambda one: one.text))
_LESSON: Columns[NoteLine] = (
    _ID,
    Column(
        "state",
        lambda one: "proposed" if one.proposed else f"accepted by {one.accepted_by}",
        lambda one: Colour.YELLOW if one.proposed else Colour.GREEN,
        keeps=True,
    ),
    Column("ticket", lambda one: f"ticket {one.ticket}" if one.ticket is not None else "", Colour.DIM),
    _SCOPE,
    Column("text", lambda one: one.text),
)


_NO_LESSON = "No lesson is known: one is proposed when a ticket lands after a failed attempt."


def _rows(found: Notes | Memories | Lessons, width: int) -> list[Row]:
    match found:
        case Notes():
            return listing(_NOTE, found.notes, width) or [row("No note is open: legion note add TEXT")]
        case Memories():
            return listing(_MEMORY, found.memories, width) or [row("Nothing is remembered: legion note remember TEXT")]
        case _:
            return listing(_LESSON, found.lessons, width) or [row(_NO_LESSON)]


def _say_left_out(call: CommandCall, found: Memories) -> None:
    if found.left_out and not call.json:
        call.say(
            f"Note: no briefing has room for {numbers(found.left_out)}: newer ones take the 2,400 characters. `legion "
            "forget N` makes room; with --files or --label a memory goes only where it is needed."
        )


def _ids(made: Memories) -> list[str]:
    return [f"Memory ID: {one.id}" for one in made.memories]


@command("notes", example=_EXAMPLE)
@click.argument("words", nargs=-1, metavar="[list] | add TEXT | close N [OUTCOME]")
@click.option(
    "--kind", type=click.Choice(_KINDS), help="With add: what it is; a decision if left out. Else: only these."
)
@click.option("--ticket", metavar="N", type=TICKET, help="With add: the ticket that it is about.")
@click.option("--all", "everything", is_flag=True, help="Also closed ones.")
def notes(call: CommandCall, words: tuple[str, ...], kind: str | None, ticket: int | None, everything: bool) -> None:
    """Decisions that hold, promises to keep, and open threads. A leader starts with them, so it cannot forget them.

    `add` records one (TEXT may be - for stdin), `close` ends one and records how.
    """
    match words:
        case () | ("list",):
            found = call.legion().notes(call.cwd, everything)
            call.show(Notes(notes=[one for one in found.notes if kind in (None, one.kind)]), _rows)
        case ("add", text):
            given = {"text": text, "ticket": ticket}
            added = call.legion().add_note(filled(AddNote, given, call.cwd, kind=kind or _KINDS[0]))
            call.answer(added, lambda: [f"Note ID: {one.id}" for one in added.notes])
        case ("close", number, *rest) if number.isdecimal() and len(rest) < 2:
            outcome = read_text(rest[0], "OUTCOME") if rest else ""
            closed = call.legion().close_note(int(number), CloseNote(cwd=call.cwd, outcome=outcome))
            call.answer(closed, lambda: [f"Note {one.id} is closed." for one in closed.notes])
        case _:
            raise BadInput("Run `legion note`, `legion note add TEXT` or `legion note close N [OUTCOME]`.")


@command("lessons", example="legion note lessons\nlegion note lessons accept 7\nlegion note lessons reject 8")
@click.argument("words", nargs=-1, metavar="[list] | accept N | reject N")
def lessons(call: CommandCall, words: tuple[str, ...]) -> None:
    """Lessons of this project: where an attempt failed and a later one passed, the difference is proposed as one.

    Briefings carry accepted lessons that fit a ticket's files or labels. `reject` forgets one, also an accepted one.
    """
    match words:
        case () | ("list",):
            call.show(call.legion().lessons(call.cwd), _rows)
        case ("accept", number) if number.isdecimal():
            accepted = call.legion().accept_lesson(int(number), CloseNote(cwd=call.cwd))
            call.answer(accepted, lambda: [f"Lesson {number} is accepted: briefings carry it where it fits."])
        case ("reject", number) if number.isdecimal():
            call.report(call.legion().forget(int(number), CloseNote(cwd=call.cwd)))
        case _:
            raise BadInput(
                "Run `legion note lessons`, `legion note lessons accept N` or `legion note lessons reject N`."
            )


remember = row_command("remember", NoteRows.remember, _REMEMBER, says=_ids, then=_say_left_out)
memories = row_command("memories", NoteRows.memories, "legion note memories", shows=_rows, then=_say_left_out)
forget = row_command("forget", NoteRows.forget, "legion note forget 3")
