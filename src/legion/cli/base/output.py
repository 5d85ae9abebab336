"""The terminal or file that a command writes to: cuts, wraps and colours lines for it.

Text from outside must pass `sanitize` first.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO

from legion.client.text.rows import Row
from legion.client.text.terminal import (
    Cell,
    Colour,
    clock,
    count,
    cut,
    duration,
    fine_duration,
    numbers,
    reveal_lines,
    sanitize,
    sanitize_lines,
    size,
    thousands,
    width,
    wrap,
)
from legion.client.text.tickets import in_ascii, style_of

__all__ = [
    "Cell",
    "Colour",
    "Screen",
    "clock",
    "count",
    "cut",
    "duration",
    "fine_duration",
    "numbers",
    "reveal_lines",
    "sanitize",
    "sanitize_lines",
    "size",
    "state_cell",
    "symbol",
    "thousands",
    "width",
    "wrap",
]

_LONGEST = 1000
"""Columns of a text that is not cut to the width of the screen."""


@dataclass(frozen=True, kw_only=True)
class Screen:
    """The terminal or file that is written to. `height` is None where the output need not fit."""

    tty: bool
    colours: bool
    unicode: bool
    width: int
    height: int | None
    cuts: bool = True
    """Whether lines are cut to the width: not in a file or a pipe, unless COLUMNS asks for it."""

    @staticmethod
    def of(stream: TextIO, *, plain: bool) -> Screen:
        tty = stream.isatty()
        columns, rows = 100, 24
        if tty:
            try:
                columns, rows = os.get_terminal_size(stream.fileno())
            except OSError:
                columns, rows = 80, 24
        wanted = os.environ.get("COLUMNS", "")
        stated = wanted.isdigit() and int(wanted) > 0
        if stated:
            columns = int(wanted)
        return Screen(
            tty=tty,
            colours=tty and not plain and os.environ.get("TERM") != "dumb",
            unicode="utf" in (stream.encoding or "").lower(),
            width=max(columns or 80, 20),
            height=rows if tty else None,
            cuts=tty or stated,
        )

    def paint(self, text: str, colour: Colour) -> str:
        return f"\x1b[{colour.value}m{text}\x1b[0m" if self.colours and colour.value and text else text

    @property
    def columns(self) -> int:
        """The width that rows are made for."""
        return self.width if self.cuts else _LONGEST

    def rows(self, rows: Iterable[Row]) -> list[str]:
        """Rows as lines with their colours."""
        signs = str if self.unicode else in_ascii
        return ["".join(self.paint(signs(cell.text), cell.colour) for cell in row.trimmed) for row in rows]

    def bold(self, text: str) -> str:
        return self.paint(text, Colour.BOLD)

    def dim(self, text: str) -> str:
        return self.paint(text, Colour.DIM)

    def line(self, *cells: Cell, indent: int = 0) -> str:
        """Cells one after another, cut to the width."""
        left = self.width - indent
        painted = " " * indent
        for cell in cells:
            text = self.cut(cell.text, left)
            left -= width(text)
            painted += self.paint(text, cell.colour)
        return painted.rstrip()

    def aside(self, text: str) -> list[str]:
        """A dim, indented note that belongs to the line above."""
        return self.note(text, Colour.DIM)

    def note(self, text: str, colour: Colour = Colour.NONE, *, indent: int = 2) -> list[str]:
        """A sentence that a person acts on: wrapped where the screen is narrow, and not cut to its width."""
        text = cut(text, _LONGEST)
        lines = wrap(text, self.width - indent) if self.cuts else [text]
        return [" " * indent + self.paint(line, colour) for line in lines]

    def cut(self, text: str, columns: int) -> str:
        return cut(text, columns if self.cuts else _LONGEST, "…" if self.unicode else "~")

    def table(self, rows: Sequence[Sequence[Cell]], *, indent: int = 2, gap: int = 2, uncut: bool = False) -> list[str]:
        """Aligned columns. The widest columns are cut first where the screen is too narrow.

        With `uncut`, a cell that was cut is repeated completely below its row.
        """
        if not rows:
            return []
        widths = [max(width(row[n].text) for row in rows) for n in range(len(rows[0]))]
        room = self.width - indent - gap * (len(widths) - 1)
        while self.cuts and sum(widths) > room and max(widths) > 4:
            widest = widths.index(max(widths))
            others = [columns for n, columns in enumerate(widths) if n != widest]
            widths[widest] = max(4, room - sum(others), max(others, default=0) - 1 if others else 4)
        lines = []
        for row in rows:
            cells: list[Cell] = []
            for cell, columns in zip(row, widths, strict=True):
                text = self.cut(cell.text, columns)
                cells += [Cell(text, cell.colour), Cell(" " * (columns - width(text) + gap))]
            shown = self.line(*cells[:-1], indent=indent)
            lines.append(shown)
            for cell in row if uncut else ():
                lines += [] if cell.text in shown else self.paragraph(cell.text, indent=indent + 4)
        return lines

    def paragraph(
        self, text: str, *, indent: int = 2, most_lines: int | None = None, rest: str = "--full"
    ) -> list[str]:
        """A text of many lines, wrapped; where it was cut, a note names the option that shows the rest."""
        lines = []
        for line in sanitize_lines(text if most_lines is None else text[: 400 * most_lines]):
            lines += wrap(line, self.width - indent) or [""]
        while lines and not lines[-1].strip():
            lines.pop()
        shown = lines if most_lines is None else lines[:most_lines]
        painted = [(" " * indent + line).rstrip() for line in shown]
        if len(shown) < len(lines) or (most_lines is not None and len(text) > 400 * most_lines):
            painted.append(self.line(Cell(f"(cut; {rest} shows all of it)", Colour.DIM), indent=indent))
        return painted


def symbol(screen: Screen, state: str) -> str:
    return style_of(state).symbol if screen.unicode else style_of(state).ascii


def state_cell(screen: Screen, state: str) -> Cell:
    return Cell(f"{symbol(screen, state)} {state}", style_of(state).colour)


@contextmanager
def progress(what: str, hint: str = "") -> Iterator[None]:
    """Print what is being done after one second; on a terminal, count the seconds, and say what the person can do."""
    done = threading.Event()
    started = time.monotonic()
    tty = sys.stderr.isatty()

    def show() -> None:
        shown = False
        while not done.wait(1.0):
            if tty:
                passed = duration(time.monotonic() - started)
                sys.stderr.write(f"\r{what}, {passed}; {hint}\x1b[K" if hint else f"\r{what} ({passed})")
                sys.stderr.flush()
            elif not shown:
                sys.stderr.write(f"{what} ...\n")
            shown = True
        if shown and tty:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    printer = threading.Thread(target=show, daemon=True)
    printer.start()
    try:
        yield
    finally:
        done.set()
        printer.join()
