"""`legion status done`: a summary of the work since the last collect."""

from __future__ import annotations

import click

from legion.cli.base.row_command import row_command
from legion.client.text.plans import plan_row
from legion.client.text.rows import BLANK, Column, Columns, Row, head, listing, note, row
from legion.client.text.states import style_of
from legion.client.text.terminal import Cell, Colour, clock, count, duration
from legion.client.text.tickets import about, cost, dollars
from legion.wire.history import HistoryRows, WorkSummary
from legion.wire.tickets import TicketLine

_HOURS = click.Option(
    ["--hours"],
    type=click.FloatRange(0.01, 100_000),
    metavar="H",
    help="The last H hours, instead of since your last collect.",
)
IN_SHORT: Columns[TicketLine] = (
    Column("state", lambda one: f"{style_of(one.state).symbol} {one.state}", lambda one: style_of(one.state).colour),
    Column("ticket", lambda one: f"#{one.id}", keeps=True),
    Column("title", lambda one: one.title),
    Column("about", about, Colour.DIM),
)
"""A ticket on one line."""


def _rows(found: WorkSummary, width: int) -> list[Row]:
    made = [row(Cell(found.project, Colour.BOLD), Cell(f"  {found.because}, {clock(found.since)}", Colour.DIM))]
    groups = (
        ("Waits for you", found.waiting),
        ("Landed", found.landed),
        ("Failed", found.failed),
        ("Stopped", found.stopped),
    )
    for name, tickets in groups:
        if tickets:
            made += [BLANK, head(f"{name}: {len(tickets)}"), *listing(IN_SHORT, tickets, width, indent=2)]
    if found.goals:
        lines = [line for one in found.goals for line in plan_row(one, width)]
        made += [BLANK, head(f"Goals that were read again: {len(found.goals)}"), *lines]
    return [*made, BLANK, *_sums(found)]


def _sums(found: WorkSummary) -> list[Row]:
    spent = found.usage
    texts = ["No agent has worked in this time."]
    if spent.runs:
        each = f", {dollars(spent.usd_per_landed)} for each landed ticket" if spent.usd_per_landed else ""
        texts = [f"{cost(spent.usage)} and {duration(spent.seconds)} of agents' time{each}."]
    if found.sent_back:
        conflicts = f", {found.conflicts} of them for conflicts" if found.conflicts else ""
        texts.append(f"{count(found.sent_back, 'attempt was', 'attempts were')} sent back{conflicts}.")
    if found.open:
        texts.append(f"{count(found.open, 'ticket has', 'tickets have')} not ended.")
    waits = count(found.to_collect, "landed commit waits", "landed commits wait")
    return [*map(row, texts), *([note(f"{waits}: legion collect", indent=2)] if found.to_collect else [])]


done = row_command("done", HistoryRows.stretch, "legion status done\nlegion status done --hours 8", _HOURS, shows=_rows)
