"""Standing agents as lines: the top of the status screen, and rows of tables. Without click, for the fast path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from legion.cli.base.output import Cell, Colour, Screen, clock, count, sanitize
from legion.wire.agents import AgentLine, Seat

_SHORT = 8


def seat_lines(seat: Seat, screen: Screen) -> Iterator[str]:
    """The top of the status screen: who you are, your mail, your direct reports."""
    yield f"You: {sanitize(seat.name)} ({'working' if seat.working else 'idle'})"
    yield f"Pending messages: {len(seat.mail)}"
    for message in seat.mail:
        head = f"{message.sender_name} ({message.kind}, {clock(message.sent_at)}):"
        yield screen.line(Cell(sanitize(head), Colour.BOLD), Cell(f" {sanitize(message.text)}"), indent=2)
    if seat.mail:
        yield from screen.aside("`legion inbox mail` shows the complete texts")
    if seat.reports:
        yield screen.bold("Direct reports")
        yield from report_lines(seat.reports, screen)


def report_lines(reports: Iterable[AgentLine], screen: Screen) -> list[str]:
    return screen.table([agent_row(line) for line in reports])


def agent_row(line: AgentLine) -> list[Cell]:
    colour = Colour.GREEN if line.working else Colour.DIM
    waiting = f"{count(line.waiting, 'message')}" if line.waiting else ""
    money = f"${line.spent:.2f}" + (f" of ${line.budget:.2f}" if line.budget is not None else "")
    return [
        Cell(sanitize(line.name), Colour.BOLD),
        Cell(line.id[:_SHORT]),
        Cell(agent_state(line), colour),
        Cell(sanitize(line.doing if line.doing not in ("idle", "fired") else ""), Colour.DIM),
        Cell(waiting, Colour.YELLOW),
        Cell(money if line.spent or line.budget is not None else "", Colour.DIM),
    ]


def agent_state(line: AgentLine) -> str:
    return "fired" if line.fired_at is not None else "working" if line.working else "idle"
