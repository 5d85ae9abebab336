"""`legion plan routine`: tickets that start by time or event."""

from __future__ import annotations

import click

from legion.cli.base.command import CommandCall, command, group
from legion.cli.base.output import Cell, Colour, Screen, clock, sanitize
from legion.cli.base.parameters import BIGGEST, teams
from legion.cli.base.template_request import named_values
from legion.cli.base.texts import read_text
from legion.wire.projects import Where
from legion.wire.templates import AddRoutine, RoutineLine, Routines

_NUMBER = click.argument("id", metavar="N", type=click.IntRange(1, BIGGEST))
_ADD = """\
legion plan routine add 'every weekday 07:00' 'Update the dependencies whose new version passes the tests.'
legion plan routine add 'on failed-twice' audit --var path=src --budget 2"""


@command("add", example=_ADD)
@click.argument("starts", metavar="WHEN")
@click.argument("what", metavar="TEMPLATE|TEXT")
@click.option("--var", "values", metavar="K=V", multiple=True, help="A value for a variable of the template.")
@click.option("--team", metavar="NAME", default="", shell_complete=teams, help="The team of the tickets.")
@click.option("--budget", metavar="USD", type=float, help="Dollars that each ticket may cost.")
def add(call: CommandCall, starts: str, what: str, values: tuple[str, ...], team: str, budget: float | None) -> None:
    """Dispatch a ticket, or a template, by time or by event from now on. TEXT may be - for stdin.

    WHEN is a time of this machine's zone (`every day 07:00`, `every weekday 07:00`, `every monday,thursday 9:30`,
    `every 2 hours`) or an event (`on target-red`, `on failed-twice`, `on tag 'v*'`). Times that were missed are one
    start. While a ticket of the last start is open, it does not start again. A template's plan is approved if it has
    no findings.
    """
    wanted = AddRoutine(
        cwd=call.cwd,
        starts=starts,
        what=read_text(what, "TEXT"),
        values=named_values(values),
        team=team,
        budget=budget,
    )
    made = call.legion().add_routine(wanted)
    call.answer(made, lambda: [f"Routine ID: {one.id}{_next(one)}" for one in made.routines])


@command("list", example="legion plan routine list")
def listed(call: CommandCall) -> None:
    """The routines of this project: when each starts next, and what its last start led to."""
    found = call.legion().routines(call.cwd)
    call.answer(found, lambda: _list(found, call.screen))


@command("remove", example="legion plan routine remove 2")
@_NUMBER
def remove(call: CommandCall, id: int) -> None:
    """End a routine. Its tickets stay."""
    call.report(call.legion().remove_routine(id, Where(cwd=call.cwd)))


@command("run", example="legion plan routine run 2")
@_NUMBER
def run(call: CommandCall, id: int) -> None:
    """Start a routine now. Its next start by time stays as it is."""
    found = call.legion().run_routine(id, Where(cwd=call.cwd))
    call.answer(found, lambda: [sanitize(one.last_result) for one in found.routines])


def _list(found: Routines, screen: Screen) -> list[str]:
    if not found.routines:
        return ["There is no routine: legion plan routine add WHEN TEMPLATE|TEXT"]
    return screen.table([_row(one) for one in found.routines], indent=0)


def _row(one: RoutineLine) -> list[Cell]:
    last = f"{clock(one.last_at)}: {one.last_result}" if one.last_at is not None else one.last_result
    return [
        Cell(str(one.id), Colour.BOLD),
        Cell(f"{sanitize(one.starts)}{_next(one)}", Colour.CYAN),
        Cell(sanitize(one.template or one.text.splitlines()[0][:60])),
        Cell(sanitize(last), Colour.DIM),
    ]


def _next(one: RoutineLine) -> str:
    return f", next {clock(one.due_at)}" if one.due_at is not None else ""


routine = group(
    "routine",
    """Tickets that start by time or event: add, list, remove, run.

They have your rights and the budget that you give them, like tickets that you dispatch.
""",
    "legion plan routine add 'every weekday 07:00' 'Look for flaky tests and fix one.'\nlegion plan routine list",
    add,
    listed,
    remove,
    run,
)
