"""The live output of demo and rehearsal: a line for each event, and on a terminal the board below them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO

from legion.cli.base.output import Cell, Colour, Screen, sanitize, state_cell, symbol
from legion.client.text.tickets import style_of
from legion.wire.tickets import EventLine, TicketLine

_COLOURED = ("done", "parked", "failed")
"""States whose complete line is coloured; of the others only the symbol."""


@dataclass(frozen=True)
class StoryLine:
    """One line of output; `state` determines its symbol and colour."""

    text: str
    state: str = ""
    ticket: int | None = None


class StoryPrinter:
    """Prints lines above the board: the board is erased before each line and drawn again below it."""

    def __init__(self, stream: TextIO, screen: Screen, *, board: bool) -> None:
        self._stream = stream
        self._screen = screen
        self._with_board = board and screen.tty
        self._board: list[str] = []
        self._drawn = 0
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    @contextmanager
    def live(self) -> Iterator[None]:
        """Hide the cursor during the block, and restore the terminal in any case."""
        if self._with_board:
            self._stream.write("\x1b[?25l")
        try:
            yield
        finally:
            if self._with_board:
                self._erase()
                self._board = []
                self._stream.write("\x1b[?25h")
            self._stream.flush()

    def print_line(self, line: str = "") -> None:
        self._erase()
        self._stream.write(line + "\n")
        self._draw()

    def print_event(self, line: StoryLine) -> None:
        """Print the line, with the time since the start."""
        screen, state = self._screen, line.state
        colour = style_of(state).colour if state else Colour.NONE
        mark = symbol(screen, state) if state else " "
        number = f"#{line.ticket} " if line.ticket else ""
        self.print_line(
            screen.line(
                Cell(f"{self.seconds:5.1f}s ", Colour.DIM),
                Cell(f"{mark} ", colour),
                Cell(number, Colour.BOLD),
                Cell(sanitize(line.text), colour if state in _COLOURED else Colour.NONE),
            )
        )

    def show(self, tickets: Sequence[TicketLine]) -> None:
        """Draw the current board."""
        if self._with_board:
            self._screen = Screen.of(self._stream, plain=not self._screen.colours)
            self._board = ["", *board_of(tickets, self._screen)]
            self._erase()
            self._draw()

    def _erase(self) -> None:
        if self._drawn:
            self._stream.write(f"\x1b[{self._drawn}A\r\x1b[J")
            self._drawn = 0

    def _draw(self) -> None:
        room = (self._screen.height or 24) - 2
        lines = self._board[:room]
        self._stream.write("".join(f"{line}\n" for line in lines))
        self._drawn = len(lines)
        self._stream.flush()


def board_of(tickets: Sequence[TicketLine], screen: Screen) -> list[str]:
    rows = [
        [
            state_cell(screen, ticket.state),
            Cell(f"#{ticket.id}", Colour.BOLD),
            Cell(sanitize(ticket.title)),
            Cell(_activity(ticket), Colour.DIM),
        ]
        for ticket in sorted(tickets, key=lambda ticket: ticket.id)
    ]
    return screen.table(rows, indent=1)


def _activity(ticket: TicketLine) -> str:
    """The last column. The reason of an ended ticket has a line of its own."""
    attempt = f"attempt {ticket.attempt}" if ticket.attempt > 1 else ""
    doing = "" if ticket.state in ("done", "failed") else sanitize(ticket.doing).removeprefix("agent ")
    return ", ".join(part for part in (attempt, doing) if part)


class Story:
    """Describes events. Remembers which tickets have started, to tell a resumption from a start."""

    def __init__(self) -> None:
        self._started: set[int] = set()

    def of(self, event: EventLine, tickets: Mapping[int, TicketLine]) -> StoryLine | None:
        """A line for the event; None for events that do not matter to a person."""
        data, number = event.data, event.ticket
        if event.kind == "target.green":
            return StoryLine("the checks are green on the code as it is", "done")
        if event.kind == "target.red":
            return StoryLine("the checks are red on the code as it is", "failed")
        if number is None:
            return None
        if event.kind == "run.started":
            resumes = f"its agent resumes in attempt {data.get('attempt')}"
            start = resumes if number in self._started else "an agent starts"
            self._started.add(number)
            return StoryLine(f"{start}: {_title(tickets, number)}", "working", number)
        if event.kind == "check.receipt":
            return StoryLine(f"its own proof is {data.get('verdict')}", "checking", number)
        if event.kind == "landing.landed":
            return StoryLine(f"landed as {str(data.get('commit'))[:8]}, its checks green", "done", number)
        return _moved(number, data) if event.kind == "ticket.moved" else None


def _moved(number: int, data: Mapping[str, object]) -> StoryLine | None:
    reason = data.get("reason")
    match data.get("step"):
        case "confirm":
            return StoryLine("the checkpoint passed: tickets after it may start", "done", number)
        case "tryagain":
            return StoryLine(f"goes back: {reason}", "parked", number)
        case "resume":
            return StoryLine(str(reason), "parked", number)
        case "park" if data.get("from") == "working":
            return StoryLine(f"waits: {reason}", "parked", number)
        case "fail":
            return StoryLine(f"failed: {reason}", "failed", number)
        case "inspect":
            return StoryLine("the checkpoint starts: the checks run on what has landed", "checking", number)
        case _:
            return None


def _title(tickets: Mapping[int, TicketLine], number: int) -> str:
    return tickets[number].title if number in tickets else f"ticket {number}"
