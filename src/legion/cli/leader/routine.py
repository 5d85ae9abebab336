"""`legion plan routine`: tickets that start by time or event."""

from __future__ import annotations

from legion.cli.base.command import group
from legion.cli.base.row_command import row_command
from legion.client.text.rows import Column, Columns, Row, listing, row
from legion.client.text.terminal import Colour, clock
from legion.wire.templates import RoutineLine, Routines, TemplateRows

_ADD = """\
legion plan routine add 'every weekday 07:00' 'Update the dependencies whose new version passes the tests.'
legion plan routine add 'on failed-twice' audit --var path=src --budget 2"""


def _next(one: RoutineLine) -> str:
    return f", next {clock(one.due_at)}" if one.due_at is not None else ""


def _last(one: RoutineLine) -> str:
    return f"{clock(one.last_at)}: {one.last_result}" if one.last_at is not None else one.last_result


_ROUTINE: Columns[RoutineLine] = (
    Column("id", lambda one: str(one.id), Colour.BOLD, keeps=True),
    Column("starts", lambda one: f"{one.starts}{_next(one)}", Colour.CYAN),
    Column("what", lambda one: one.template or one.text.splitlines()[0][:60]),
    Column("last", _last, Colour.DIM),
)


def _rows(found: Routines, width: int) -> list[Row]:
    made = listing(_ROUTINE, found.routines, width)
    return made or [row("There is no routine: legion plan routine add WHEN TEMPLATE|TEXT")]


def _ids(found: Routines) -> list[str]:
    return [f"Routine ID: {one.id}{_next(one)}" for one in found.routines]


def _results(found: Routines) -> list[str]:
    return [one.last_result for one in found.routines]


routine = group(
    "routine",
    """Tickets that start by time or event: add, list, remove, run.

They have your rights and the budget that you give them, like tickets that you dispatch.
""",
    "legion plan routine add 'every weekday 07:00' 'Look for flaky tests and fix one.'\nlegion plan routine list",
    row_command("add", TemplateRows.add_routine, _ADD, says=_ids),
    row_command("list", TemplateRows.routines, "legion plan routine list", shows=_rows),
    row_command("remove", TemplateRows.remove_routine, "legion plan routine remove 2"),
    row_command("run", TemplateRows.run_routine, "legion plan routine run 2", says=_results),
)
