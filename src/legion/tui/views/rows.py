"""Rows: the lines that a screen is made of, and how cells are aligned, cut and wrapped to a width."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from legion.client.text.terminal import Cell, Colour, cut, sanitize, sanitize_lines, width, wrap


@dataclass(frozen=True)
class Row:
    """One line. Rows with the same key belong together and are selected together; without a key it is only read.

    No row holds a control character: text that a view did not clean is cleaned here, so that nothing from outside can
    reach the terminal as anything but text.
    """

    cells: tuple[Cell, ...]
    key: str = ""
    tint: Colour = Colour.NONE
    """The colour of its background: an added or removed line."""

    def __post_init__(self) -> None:
        if not all(cell.text.isprintable() for cell in self.cells):
            cleaned = tuple(Cell(sanitize(cell.text), cell.colour) for cell in self.cells)
            object.__setattr__(self, "cells", cleaned)

    @property
    def text(self) -> str:
        return "".join(cell.text for cell in self.cells).rstrip()


BLANK = Row(())


def row(*cells: Cell | str, key: str = "") -> Row:
    return Row(tuple(Cell(cell) if isinstance(cell, str) else cell for cell in cells), key)


def head(text: str) -> Row:
    return row(Cell(text, Colour.BOLD))


def note(text: str, *, indent: int = 0) -> Row:
    return row(Cell(" " * indent + text, Colour.DIM))


def clean(text: str) -> str:
    """Text from outside, on one line, without control sequences."""
    return sanitize(text)


def fit(cells: Iterable[Cell], columns: int) -> tuple[Cell, ...]:
    """The cells cut to a width."""
    kept: list[Cell] = []
    left = columns
    for cell in cells:
        if left <= 0:
            break
        text = cut(cell.text, left)
        left -= width(text)
        kept.append(Cell(text, cell.colour))
    return tuple(kept)


def table(
    lines: Sequence[tuple[str, Sequence[Cell]]], columns: int, *, gap: int = 2, indent: int = 0, keep: int = 0
) -> list[Row]:
    """Aligned columns, one row per (key, cells). The widest columns are cut first; `keep` ones are never cut."""
    if not lines:
        return []
    widths = [max(width(cells[n].text) for _, cells in lines) for n in range(len(lines[0][1]))]
    room = columns - indent - gap * (len(widths) - 1)
    while sum(widths) > room and max(widths[keep:], default=0) > 4:
        widest = max(range(keep, len(widths)), key=lambda n: widths[n])
        widths[widest] = max(4, min(widths[widest] - 1, room - (sum(widths) - widths[widest])))
    rows = []
    for key, cells in lines:
        made: list[Cell] = [Cell(" " * indent)] if indent else []
        for cell, size in zip(cells, widths, strict=True):
            text = cut(cell.text, size)
            made += [Cell(text, cell.colour), Cell(" " * (size - width(text) + gap))]
        rows.append(Row(fit(made[:-1], columns), key))
    return rows


def paragraph(
    text: str, columns: int, *, indent: int = 0, colour: Colour = Colour.NONE, key: str = "", most: int | None = None
) -> list[Row]:
    """A text of many lines from outside, wrapped; at most `most` lines of it."""
    rows = []
    for line in sanitize_lines(text if most is None else text[: 400 * most]):
        for piece in wrap(line, max(8, columns - indent)) or [""]:
            rows.append(Row((Cell(" " * indent + piece, colour),), key))
    while rows and not rows[-1].text.strip():
        rows.pop()
    if most is not None and len(rows) > most:
        rows = [*rows[:most], note("…", indent=indent)]
    return rows
