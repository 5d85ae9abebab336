"""`legion status` and its parts projects, graph and done: the daemon, its projects and tickets on one screen."""

from __future__ import annotations

from collections.abc import Iterator

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import sanitize
from legion.cli.base.row_command import row_command
from legion.cli.board.status_screen import screen_of
from legion.client.text.board import drawing
from legion.client.text.catalog import project_rows
from legion.client.text.plans import plan_row
from legion.client.text.rows import BLANK, Column, Columns, Row, head, listing, note, row
from legion.client.text.terminal import Cell, Colour, clock, count, duration
from legion.client.text.tickets import about as about
from legion.client.text.tickets import cost, style_of
from legion.client.text.tickets import dollars as dollars
from legion.wire.board import Graph
from legion.wire.history import HistoryRows, WorkSummary
from legion.wire.projects import ProjectRows
from legion.wire.tickets import TicketLine


@command("status", example="legion status -w")
@click.argument("id", metavar="[ID]", default="")
@click.option("-w", "--watch", is_flag=True, help="Stay and redraw on every event; Ctrl-C ends it.")
@click.option("--all", "all_tickets", is_flag=True, help="Also show tickets that ended long ago.")
def status(call: CommandCall, id: str, watch: bool, all_tickets: bool) -> None:
    """Show you, your mail and your agents, then the project and its tickets; with ID one agent.

    In a folder that belongs to no project: the tickets of all projects.
    """
    if id:
        from legion.client.text.agents import page_rows

        page = call.legion().agent(id)
        call.show(page, page_rows)
        return
    if watch:
        from legion.cli.base.live import follow_status

        follow_status(call, all_tickets, screen_of)
        return
    now = call.legion().status(call.cwd, all_tickets)
    call.answer(now, lambda: screen_of(now, call.screen, everything=all_tickets))


projects = row_command("projects", ProjectRows.projects, "legion status projects", shows=project_rows)


@command("graph", example="legion status graph\nlegion status graph --dot | dot -Tsvg > board.svg")
@click.option("--dot", is_flag=True, help="As input for Graphviz.")
@click.option("--mermaid", is_flag=True, help="As a Mermaid flowchart, for Markdown.")
def graph(call: CommandCall, dot: bool, mermaid: bool) -> None:
    """The board: which ticket comes after which, and the longest chain.

    Each ticket is drawn below the one it waits for last; `also after` names the others.
    """
    if dot and mermaid:
        raise click.UsageError("Choose --dot or --mermaid", click.get_current_context())
    board = call.legion().graph(call.cwd)
    if dot:
        call.answer(board, lambda: _dot(board))
    elif mermaid:
        call.answer(board, lambda: _mermaid(board))
    else:
        call.show(board, drawing)


def _label(ticket: TicketLine) -> str:
    title = sanitize(ticket.title)[:60].replace("\\", "/").replace('"', "'")
    return f"#{ticket.id} {title} ({sanitize(ticket.state)})"


def _dot(board: Graph) -> Iterator[str]:
    yield "digraph legion {"
    yield "  rankdir=LR; node [shape=box];"
    for ticket in board.tickets:
        bold = ", style=bold" if ticket.id in board.critical_path else ""
        yield f'  {ticket.id} [label="{_label(ticket)}"{bold}];'
    for later, earlier in board.edges:
        yield f"  {earlier} -> {later};"
    yield "}"


def _mermaid(board: Graph) -> Iterator[str]:
    yield "flowchart LR"
    for ticket in board.tickets:
        label = _label(ticket).replace("#", "#35;").replace("<", "#lt;").replace(">", "#gt;")
        yield f'  t{ticket.id}["{label}"]'
    for later, earlier in board.edges:
        yield f"  t{earlier} --> t{later}"
    if board.critical_path:
        yield "  classDef longest stroke-width:3px"
        yield f"  class {','.join(f't{id}' for id in board.critical_path)} longest"


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
