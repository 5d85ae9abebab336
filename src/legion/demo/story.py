"""What a person sees while it runs: a line for everything that happens, and on a terminal the board below them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO

from legion.cli.base.output import Cell, Colour, Screen, harmless
from legion.cli.base.states import state_cell, style_of, symbol
from legion.wire.tickets import EventLine, TicketLine

_LOUD = ("done", "parked", "failed")
"""States whose lines are coloured as a whole; of the others only the symbol is."""


@dataclass(frozen=True)
class StoryLine:
    """One line of the story. `state` gives it its symbol and colour."""

    text: str
    state: str = ""
    ticket: int | None = None


class StoryPrinter:
    """Lines stay where they are; the board is taken away before each and drawn again below."""

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
    def on_stage(self) -> Iterator[None]:
        """Leaves the terminal as it was, however it ends."""
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

    def say(self, line: str = "") -> None:
        self._erase()
        self._stream.write(line + "\n")
        self._draw()

    def tell(self, happening: StoryLine) -> None:
        """With the time since the start in front."""
        screen, state = self._screen, happening.state
        colour = style_of(state).colour if state else Colour.NONE
        mark = symbol(screen, state) if state else " "
        number = f"#{happening.ticket} " if happening.ticket else ""
        self.say(
            screen.line(
                Cell(f"{self.seconds:5.1f}s ", Colour.DIM),
                Cell(f"{mark} ", colour),
                Cell(number, Colour.BOLD),
                Cell(harmless(happening.text), colour if state in _LOUD else Colour.NONE),
            )
        )

    def show(self, tickets: Sequence[TicketLine]) -> None:
        """The board as it is now."""
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
            Cell(harmless(ticket.title)),
            Cell(_shortly(ticket), Colour.DIM),
        ]
        for ticket in sorted(tickets, key=lambda ticket: ticket.id)
    ]
    return screen.table(rows, indent=1)


def _shortly(ticket: TicketLine) -> str:
    """The last column. What ended has said its reason in a line of its own."""
    attempt = f"attempt {ticket.attempt}" if ticket.attempt > 1 else ""
    doing = "" if ticket.state in ("done", "failed") else harmless(ticket.doing).removeprefix("agent ")
    return ", ".join(word for word in (attempt, doing) if word)


class Story:
    """Events in words. Remembers who has begun, since a second beginning is another story."""

    def __init__(self) -> None:
        self._begun: set[int] = set()

    def of(self, event: EventLine, told: Mapping[int, TicketLine]) -> StoryLine | None:
        """The event in words, or None where it says nothing that a person waits for."""
        data, number = event.data, event.ticket
        if event.kind == "target.green":
            return StoryLine("the checks are green on the code as it is", "done")
        if event.kind == "target.red":
            return StoryLine("the checks are red on the code as it is", "failed")
        if number is None:
            return None
        if event.kind == "run.started":
            goes_on = f"its agent goes on with attempt {data.get('attempt')}"
            begins = goes_on if number in self._begun else "an agent starts"
            self._begun.add(number)
            return StoryLine(f"{begins}: {_title(told, number)}", "working", number)
        if event.kind == "check.receipt":
            return StoryLine(f"its own proof is {data.get('verdict')}", "checking", number)
        if event.kind == "landing.landed":
            return StoryLine(f"landed as {str(data.get('commit'))[:8]}, its checks green", "done", number)
        return _moved(number, data) if event.kind == "ticket.moved" else None


def _moved(number: int, data: Mapping[str, object]) -> StoryLine | None:
    reason = data.get("reason")
    match data.get("step"):
        case "confirm":
            return StoryLine("the checkpoint holds: what waited for it may start", "done", number)
        case "tryagain":
            return StoryLine(f"goes back: {reason}", "parked", number)
        case "resume":
            return StoryLine(str(reason), "parked", number)
        case "park" if data.get("from") == "working":
            return StoryLine(f"waits: {reason}", "parked", number)
        case "fail":
            return StoryLine(f"failed: {reason}", "failed", number)
        case "inspect":
            return StoryLine("the checkpoint's turn: the checks run on what has landed", "checking", number)
        case _:
            return None


def _title(told: Mapping[int, TicketLine], number: int) -> str:
    return told[number].title if number in told else f"ticket {number}"
