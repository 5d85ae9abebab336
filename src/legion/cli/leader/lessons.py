"""`legion note lessons`: what failures taught; accept what was proposed."""

from __future__ import annotations

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import Cell, Colour, Screen, sanitize
from legion.wire.errors import BadInput
from legion.wire.notes import CloseNote, Lessons, NoteLine

_EXAMPLE = "legion note lessons\nlegion note lessons accept 7\nlegion note lessons reject 8"


@command("lessons", example=_EXAMPLE)
@click.argument("words", nargs=-1, metavar="[list] | accept N | reject N")
def lessons(call: CommandCall, words: tuple[str, ...]) -> None:
    """Lessons of this project: where an attempt failed and a later one passed, the difference is proposed as one.

    Briefings carry accepted lessons that fit a ticket's files or labels. `reject` forgets one, also an accepted one.
    """
    match words:
        case () | ("list",):
            found = call.legion().lessons(call.cwd)
            call.answer(found, lambda: lines(found, call.screen))
        case ("accept", number) if number.isdecimal():
            accepted = call.legion().accept_lesson(int(number), CloseNote(cwd=call.cwd))
            call.answer(accepted, lambda: [f"Lesson {number} is accepted: briefings carry it where it fits."])
        case ("reject", number) if number.isdecimal():
            call.report(call.legion().forget(int(number), CloseNote(cwd=call.cwd)))
        case _:
            raise BadInput(
                "Run `legion note lessons`, `legion note lessons accept N` or `legion note lessons reject N`."
            )


def lines(found: Lessons, screen: Screen) -> list[str]:
    if not found.lessons:
        return ["No lesson is known: one is proposed when a ticket lands after a failed attempt."]
    return screen.table([_row(one) for one in found.lessons], indent=0)


def _row(one: NoteLine) -> list[Cell]:
    state = "proposed" if one.proposed else f"accepted by {sanitize(one.accepted_by)}"
    source = f"ticket {one.ticket}" if one.ticket is not None else ""
    return [
        Cell(str(one.id), Colour.BOLD),
        Cell(state, Colour.YELLOW if one.proposed else Colour.GREEN),
        Cell(source, Colour.DIM),
        Cell(sanitize(", ".join([*one.files, *one.labels])), Colour.CYAN),
        Cell(sanitize(one.text)),
    ]
