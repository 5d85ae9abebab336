"""`legion status graph`: draws the board as text, or as input for Graphviz or Mermaid."""

from __future__ import annotations

from collections.abc import Iterator

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import sanitize
from legion.client.text.board import drawing
from legion.wire.board import Graph
from legion.wire.tickets import TicketLine


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
