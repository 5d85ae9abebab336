"""`legion status done`: a summary of the work since the last collect."""

from __future__ import annotations

from collections.abc import Iterator

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import Cell, Colour, Screen, clock, count, duration, sanitize
from legion.cli.base.states import state_cell
from legion.cli.board.status import about, dollars
from legion.wire.history import WorkSummary
from legion.wire.tickets import TicketLine


@command("done", example="legion status done\nlegion status done --hours 8")
@click.option(
    "--hours",
    type=click.FloatRange(0.01, 100_000),
    metavar="H",
    help="The last H hours, instead of since your last collect.",
)
def done(call: CommandCall, hours: float | None) -> None:
    """Summarize the work since your last collect: landed, failed, waiting for you, and its cost."""
    found = call.legion().stretch(call.cwd, hours)
    call.answer(found, lambda: _lines(found, call.screen))


def _lines(found: WorkSummary, screen: Screen) -> Iterator[str]:
    yield screen.line(
        Cell(sanitize(found.project), Colour.BOLD),
        Cell(f"  {sanitize(found.because)}, {clock(found.since)}", Colour.DIM),
    )
    for head, tickets in (
        ("Waits for you", found.waiting),
        ("Landed", found.landed),
        ("Failed", found.failed),
        ("Stopped", found.stopped),
    ):
        if tickets:
            yield ""
            yield screen.bold(f"{head}: {len(tickets)}")
            yield from screen.table([_row(ticket, screen) for ticket in tickets])
    yield ""
    yield from _sums(found, screen)


def _row(ticket: TicketLine, screen: Screen) -> list[Cell]:
    return [
        state_cell(screen, ticket.state),
        Cell(f"#{ticket.id}"),
        Cell(sanitize(ticket.title)),
        Cell(about(ticket), Colour.DIM),
    ]


def _sums(found: WorkSummary, screen: Screen) -> Iterator[str]:
    spent = found.usage
    if not spent.runs:
        yield "No agent has worked in this time."
    else:
        each = f", {dollars(spent.usd_per_landed)} for each landed ticket" if spent.usd_per_landed else ""
        yield f"{dollars(spent.usage.usd)} and {duration(spent.seconds)} of agents' time{each}."
    if found.sent_back:
        conflicts = f", {found.conflicts} of them for conflicts" if found.conflicts else ""
        yield f"{count(found.sent_back, 'attempt was', 'attempts were')} sent back{conflicts}."
    if found.open:
        yield f"{count(found.open, 'ticket has', 'tickets have')} not ended."
    if found.to_collect:
        yield from screen.aside(
            f"{count(found.to_collect, 'landed commit waits', 'landed commits wait')}: legion collect"
        )
