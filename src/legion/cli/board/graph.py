"""`legion status graph`: draws the board as text, or as input for Graphviz or Mermaid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import Cell, Colour, Screen, numbers, sanitize, width
from legion.cli.base.states import style_of, symbol
from legion.cli.board.status import about
from legion.client.text.board_tree import befores_of, tree_of
from legion.wire.projects import Graph
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
        call.answer(board, lambda: drawing_of(board, call.screen))


def drawing_of(board: Graph, screen: Screen, names: Mapping[int, str] | None = None) -> list[str]:
    """A tree where it fits, else one list per wave. `names` stand for the numbers of tickets that have none yet."""
    if not board.tickets:
        return ["The board is empty: legion dispatch -t TITLE TEXT"]
    tree = _tree(board, screen, names or {})
    lines = tree if tree is not None else list(_waves(board, screen, names or {}))
    if len(board.critical_path) > 1:
        arrow = " → " if screen.unicode else " > "
        chain = arrow.join((names or {}).get(id, str(id)) for id in board.critical_path)
        lines += ["", screen.line(Cell(_mark(screen), Colour.YELLOW), Cell(f" the longest chain: {chain}"))]
    return lines


def _mark(screen: Screen) -> str:
    return "★" if screen.unicode else "*"


def _tree(board: Graph, screen: Screen, names: Mapping[int, str]) -> list[str] | None:
    """None if it is too deep for the screen."""
    tickets = {ticket.id: ticket for ticket in board.tickets}
    lines: list[str] = []
    for node in tree_of(board, unicode=screen.unicode):
        if width(node.before) > screen.width // 2:
            return None
        lines.append(_node(tickets[node.ticket], node.before, node.also, board, screen, names))
    return lines


def _node(
    ticket: TicketLine, before: str, also: list[int], board: Graph, screen: Screen, names: Mapping[int, str]
) -> str:
    chain = len(board.critical_path) > 1 and ticket.id in board.critical_path
    others = ", ".join(names[id] for id in sorted(also)) if names else numbers(sorted(also))
    notes = [f"also after {others}"] if also else []
    if ticket.checkpoint:
        notes.append("checkpoint")
    if about(ticket):
        notes.append(about(ticket))
    state = sanitize(ticket.state)
    return screen.line(
        Cell(before, Colour.DIM),
        Cell(f"{symbol(screen, state)} ", style_of(state).colour),
        Cell(f"{names.get(ticket.id, f'#{ticket.id}')} ", Colour.BOLD),
        Cell(f"{_mark(screen)} " if chain else "", Colour.YELLOW),
        Cell(screen.cut(sanitize(ticket.title), max(16, screen.width // 2))),
        Cell(f"  {state}", style_of(state).colour),
        Cell(f"  {', '.join(notes)}" if notes else "", Colour.DIM),
    )


def _waves(board: Graph, screen: Screen, names: Mapping[int, str]) -> Iterator[str]:
    befores = befores_of(board)
    tickets = {ticket.id: ticket for ticket in board.tickets}
    for n, ids in enumerate(board.waves, 1):
        yield screen.bold(f"Wave {n}")
        for id in ids:
            if id in tickets:
                # All that it comes after, because no lines are drawn here.
                yield _node(tickets[id], "  ", befores[id], board, screen, names).replace("also after", "after", 1)


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
