"""`legion machine list` and `legion machine log`: the head and its machines, and what one of them was given."""

from __future__ import annotations

import time
from collections.abc import Iterator

import click
from click.shell_completion import CompletionItem

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import Cell, Colour, Screen, clock, duration, sanitize
from legion.cli.base.texts import valid_text
from legion.client.discovery import find
from legion.client.text.states import MACHINE_RUN_STATES, MACHINE_STATES
from legion.system.paths import default_data_dir
from legion.wire.errors import LegionError
from legion.wire.machine_pages import MachineLine, MachineList, MachineLog, MachineRunLine

_COLOURS = {
    "open": Colour.GREEN,
    "paused": Colour.YELLOW,
    "draining": Colour.YELLOW,
    "quiet": Colour.DIM,
    "silent": Colour.RED,
    "outdated": Colour.RED,
    "disk full": Colour.RED,
}


def names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Machines by name. Completion never starts the daemon."""
    try:
        found = find(ctx.params.get("data_dir") or default_data_dir()).machines().machines
    except LegionError:
        return []
    return [CompletionItem(one.name) for one in found if not one.head and one.name.startswith(incomplete)]


@command("list", example="legion machine list\nlegion machine list --json")
def machines(call: CommandCall) -> None:
    """List the head and its machines: state, runs and slots, labels, release, and when each was heard.

    Only a machine that is ready starts new runs. What a machine runs continues in every state but silent.
    """
    found = call.legion().machines()
    call.answer(found, lambda: machine_lines(found, call.screen))


def machine_lines(found: MachineList, screen: Screen) -> Iterator[str]:
    yield from screen.table([_row(one) for one in found.machines], indent=0)
    for one in found.machines:
        if one.advice:
            yield from screen.note(f"{sanitize(one.name)}: {sanitize(one.advice)}", Colour.YELLOW, indent=0)
    for url in found.also:
        yield from screen.note(f"{sanitize(url)} serves machines too.", Colour.DIM, indent=0)
    if len(found.machines) == 1:
        yield from screen.note("No other machine yet; `legion machine invite NAME` lets one in.", Colour.DIM, indent=0)


def _row(one: MachineLine) -> list[Cell]:
    heard = "this host" if one.head else _ago(one.heard_at)
    labels = ", ".join(sanitize(label) for label in one.labels)
    quiet = f"quiet {sanitize(one.quiet_hours)}" if one.quiet_hours else ""
    return [
        Cell(sanitize(one.name), Colour.BOLD),
        Cell(MACHINE_STATES.get(one.state, one.state), _COLOURS.get(one.state, Colour.NONE)),
        Cell(f"{one.runs}/{one.slots}"),
        Cell("  ".join(part for part in (labels, quiet) if part) or "-", Colour.DIM),
        Cell(sanitize(one.version)),
        Cell(heard, Colour.DIM),
    ]


def _ago(moment: float | None) -> str:
    return "never heard" if moment is None else f"heard {duration(max(0.0, time.time() - moment))} ago"


@command("log", example="legion machine log desk\nlegion machine log desk -n 200")
@click.argument("name", metavar="NAME", shell_complete=names)
@click.option("-n", "limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="How many runs.")
def log(call: CommandCall, name: str, limit: int) -> None:
    """Show the runs that a machine was given, newest last, and why one was taken from it.

    `legion log N` shows the output of a run, wherever it is. The worker's own messages are on its host.
    """
    found = call.legion().machine_log(valid_text(name, "NAME"), limit=limit)
    call.answer(found, lambda: _log_lines(found, call.screen))


def _log_lines(found: MachineLog, screen: Screen) -> Iterator[str]:
    yield from screen.table([_row(found.machine)], indent=0)
    if found.machine.advice:
        yield from screen.note(sanitize(found.machine.advice), Colour.YELLOW, indent=0)
    if not found.runs:
        yield "It was given no runs yet."
    yield from screen.table([_run_row(one) for one in found.runs], indent=0)


def _run_row(one: MachineRunLine) -> list[Cell]:
    lasted = duration(one.ended_at - one.placed_at) if one.ended_at is not None else ""
    colour = Colour.YELLOW if one.state == "lapsed" else Colour.NONE
    return [
        Cell(clock(one.placed_at), Colour.DIM),
        Cell(f"ticket {one.ticket}" if one.ticket is not None else sanitize(one.run)),
        Cell(MACHINE_RUN_STATES.get(one.state, one.state), colour),
        Cell(lasted),
        Cell(sanitize(one.why), Colour.DIM),
    ]
