"""Rows: lines of cells, aligned, cut and wrapped to a width. Commands print them, and the terminal UI draws them.

The columns of an answer are declared once, as `Column`s; `listing` makes rows of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from legion.client.text.terminal import Cell, Colour, cut, sanitize, sanitize_lines, width, wrap

Line = TypeVar("Line")
_GAP = 2
_FACT = 2000
"""Columns of what is known under a name; --json has all of it."""
_LEAST_TEXT = 24
"""Columns below which a text does not stand next to its names."""


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
    def trimmed(self) -> tuple[Cell, ...]:
        """Without spaces at its end."""
        cells = list(self.cells)
        while cells and not cells[-1].text.rstrip():
            cells.pop()
        return (*cells[:-1], Cell(cells[-1].text.rstrip(), cells[-1].colour)) if cells else ()

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


@dataclass(frozen=True)
class Column(Generic[Line]):
    """A column of an answer's lines: what it says of a line, and in which colour."""

    label: str
    says: Callable[[Line], str]
    colour: Colour | Callable[[Line], Colour] = Colour.NONE
    keeps: bool = False
    """It is not cut while a column that may be cut is left. Such columns come first."""
    least: int = 0
    """The width below which it is left out."""
    branches: Callable[[Line], str] | None = None
    """Drawn in front of what it says: the branches of a tree, or a mark."""

    def cell(self, line: Line) -> Cell:
        colour = self.colour if isinstance(self.colour, Colour) else self.colour(line)
        return Cell((self.branches(line) if self.branches else "") + sanitize(self.says(line)), colour)


Columns = tuple[Column[Line], ...]


def listing(
    declared: Columns[Line],
    lines: Iterable[Line],
    columns: int,
    *,
    key: Callable[[Line], str] = lambda line: "",
    below: Callable[[Line], Iterable[Row]] = lambda line: (),
    heads: bool = False,
    indent: int = 0,
    total: Line | None = None,
    complete: bool = False,
) -> list[Row]:
    """A row per line, with what belongs below it. Columns that say nothing of any line are left out.

    With `complete` nothing is cut: the last column is wrapped below itself.
    """
    known = [*lines, *([total] if total is not None else [])]
    wide = [one for one in declared if columns >= one.least]
    cells = [[one.cell(line) for one in wide] for line in known]
    kept = [n for n in range(len(wide)) if any(row[n].text for row in cells)]
    made = [(key(line), [row[n] for n in kept]) for line, row in zip(known, cells, strict=True)]
    if total is not None:
        made[-1] = ("", [Cell(cell.text, Colour.BOLD) for cell in made[-1][1]])
    if heads and made:
        made.insert(0, ("", [Cell(wide[n].label, Colour.DIM) for n in kept]))
    if complete:
        groups = [definitions([one], columns, indent=indent) for one in _padded(made)]
    else:
        drawn = table(made, columns, indent=indent, keep=sum(wide[n].keeps for n in kept))
        groups = [[one] for one in drawn]
    first = len(groups) - len(known)
    rows = [row for group in groups[:first] for row in group]
    for line, group in zip(known, groups[first:], strict=True):
        rows += [*group, *(below(line) if line is not total else ())]
    return rows


def _padded(lines: Sequence[tuple[str, Sequence[Cell]]]) -> list[tuple[str, list[Cell]]]:
    """All but the last column in the width of their widest cell."""
    sizes = [max(width(cells[n].text) for _, cells in lines) for n in range(len(lines[0][1]) - 1)] if lines else []
    return [
        (
            key,
            [
                *(
                    Cell(one.text + " " * (n - width(one.text)), one.colour)
                    for one, n in zip(cells[:-1], sizes, strict=True)
                ),
                cells[-1],
            ],
        )
        for key, cells in lines
    ]


def facts(pairs: Iterable[tuple[str, str]], columns: int, *, indent: int = 0, key: str = "") -> list[Row]:
    """Names and what is known under each, complete; those without a value are left out."""
    return definitions(
        [(key, [Cell(name, Colour.DIM), Cell(cut(sanitize(text), _FACT))]) for name, text in pairs if text],
        columns,
        indent=indent,
    )


def flow(cells: Iterable[Cell], columns: int, *, key: str = "", indent: int = 0) -> list[Row]:
    """Cells as running text that is wrapped between words and keeps its colours. Lines after the first are indented."""
    lines: list[list[Cell]] = [[]]
    left = columns
    for cell in cells:
        for piece in _pieces(cell.text):
            if width(piece.rstrip()) > left and lines[-1]:
                lines.append([Cell(" " * indent)] if indent else [])
                left, piece = columns - indent, piece.lstrip()
            text = cut(piece, left) if width(piece.rstrip()) > left else piece
            lines[-1].append(Cell(text, cell.colour))
            left -= width(text)
    return [Row(tuple(line), key) for line in lines]


def _pieces(text: str) -> list[str]:
    """Words, each with the spaces behind it."""
    return re.findall(r"\s*\S+\s*?(?=\S|$)|\s+", text) if text else []


def definitions(lines: Sequence[tuple[str, Sequence[Cell]]], columns: int, *, indent: int = 0) -> list[Row]:
    """As `table`, but nothing is cut: the last column is wrapped, or stands below the others where it has no room."""
    if not lines:
        return []
    sizes = [max(width(cells[n].text) for _, cells in lines) for n in range(len(lines[0][1]) - 1)]
    used = indent + sum(sizes) + _GAP * len(sizes)
    below = columns - used < _LEAST_TEXT
    room = columns - indent - _GAP if below else columns - used
    rows = []
    for key, cells in lines:
        start = [Cell(" " * indent)] if indent else []
        for cell, size in zip(cells[:-1], sizes, strict=True):
            start += [cell, Cell(" " * (size - width(cell.text) + _GAP))]
        texts = wrap(cells[-1].text, max(8, room)) or [""]
        if below:
            rows.append(Row(fit(start, columns), key))
        for number, text in enumerate(texts):
            first = start if number == 0 and not below else [Cell(" " * (columns - room))]
            rows.append(Row((*first, Cell(text, cells[-1].colour)), key))
    return rows


def paragraph(
    text: str,
    columns: int,
    *,
    indent: int = 0,
    colour: Colour = Colour.NONE,
    key: str = "",
    most: int | None = None,
    rest: str = "…",
) -> list[Row]:
    """A text of many lines from outside, wrapped; at most `most` lines of it, and then what `rest` says."""
    rows = []
    for line in sanitize_lines(text if most is None else text[: 400 * most]):
        for piece in wrap(line, max(8, columns - indent)) or [""]:
            rows.append(Row((Cell(" " * indent + piece, colour),), key))
    while rows and not rows[-1].text.strip():
        rows.pop()
    if most is not None and len(rows) > most:
        rows = [*rows[:most], note(rest, indent=indent)]
    return rows
