"""`legion note`: decisions, promises and open threads of this project."""

from __future__ import annotations

import os

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import Cell, Colour, Screen, clock, sanitize
from legion.cli.base.parameters import TICKET
from legion.cli.base.texts import read_text
from legion.wire.errors import BadInput
from legion.wire.notes import AddNote, CloseNote, NoteLine, Notes

_EXAMPLE = """\
legion note
legion note add 'We stay on Python 3.11.'
legion note add --kind promise 'The login is done on Friday.' --ticket 12
legion note close 3 'It is.'"""
_COLOURS = {"promise": Colour.YELLOW, "thread": Colour.CYAN}
_KINDS = ("decision", "promise", "thread")


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
            shown = Notes(notes=[one for one in found.notes if kind in (None, one.kind)])
            call.answer(shown, lambda: _list(shown, call.screen))
        case ("add", text):
            wanted = AddNote(
                cwd=call.cwd,
                text=read_text(text, "TEXT"),
                kind=kind or _KINDS[0],
                ticket=ticket,
                request=os.urandom(16).hex(),
            )
            added = call.legion().add_note(wanted)
            call.answer(added, lambda: [f"Note ID: {one.id}" for one in added.notes])
        case ("close", number, *rest) if number.isdecimal() and len(rest) < 2:
            given = CloseNote(cwd=call.cwd, outcome=read_text(rest[0], "OUTCOME") if rest else "")
            closed = call.legion().close_note(int(number), given)
            call.answer(closed, lambda: [f"Note {one.id} is closed." for one in closed.notes])
        case _:
            raise BadInput("Run `legion note`, `legion note add TEXT` or `legion note close N [OUTCOME]`.")


def _list(found: Notes, screen: Screen) -> list[str]:
    if not found.notes:
        return ["No note is open: legion note add TEXT"]
    return screen.table([_row(one) for one in found.notes], indent=0)


def _row(one: NoteLine) -> list[Cell]:
    about = f"#{one.ticket} " if one.ticket is not None else ""
    end = f" (closed{f': {one.outcome}' if one.outcome else ''})" if one.closed_at is not None else ""
    return [
        Cell(str(one.id), Colour.BOLD),
        Cell(one.kind, _COLOURS.get(one.kind, Colour.NONE)),
        Cell(f"{sanitize(one.author)}, {clock(one.created_at)}", Colour.DIM),
        Cell(sanitize(f"{about}{one.text}{end}")),
    ]
