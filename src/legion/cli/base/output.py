"""Measures, cuts, wraps and colours text for a terminal. Text from outside must pass `harmless` first."""

from __future__ import annotations

import os
import re
import time
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TextIO

_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c]{0,4096}(?:\x07|\x1b\\|\x9c)"  # OSC: titles, links, clipboard
    r"|\x1b[PX^_][^\x1b]{0,4096}\x1b\\"  # DCS and its like
    r"|\x1b[ -/]*[0-~]"
)
_LONGEST = 1000
"""Columns of a text that is not cut to the width of the screen."""
_UNBROKEN = re.compile(r"(?:`[^`]*`|\S)+")
"""A word, or a command in backquotes, which a person copies in one piece."""
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_MOST_SHOWN = 4000
"""Characters of a one-line text that are processed; no terminal is wider."""


class Colour(Enum):
    NONE = ""
    BOLD = "1"
    DIM = "2"
    RED = "31"
    GREEN = "32"
    YELLOW = "33"
    BLUE = "34"
    CYAN = "36"


@dataclass(frozen=True)
class Cell:
    """A piece of a line: plain text and its colour."""

    text: str
    colour: Colour = Colour.NONE


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
            others = [size for n, size in enumerate(widths) if n != widest]
            widths[widest] = max(4, room - sum(others), max(others, default=0) - 1 if others else 4)
        lines = []
        for row in rows:
            cells: list[Cell] = []
            for cell, size in zip(row, widths, strict=True):
                text = self.cut(cell.text, size)
                cells += [Cell(text, cell.colour), Cell(" " * (size - width(text) + gap))]
            shown = self.line(*cells[:-1], indent=indent)
            lines.append(shown)
            for cell in row if uncut else ():
                lines += [] if cell.text in shown else self.paragraph(cell.text, indent=indent + 4)
        return lines

    def paragraph(self, text: str, *, indent: int = 2, most_lines: int | None = None) -> list[str]:
        """A text of many lines, wrapped; a note marks a text that was cut."""
        lines = []
        for line in sanitize_lines(text if most_lines is None else text[: 400 * most_lines]):
            lines += wrap(line, self.width - indent) or [""]
        while lines and not lines[-1].strip():
            lines.pop()
        shown = lines if most_lines is None else lines[:most_lines]
        painted = [(" " * indent + line).rstrip() for line in shown]
        if len(shown) < len(lines) or (most_lines is not None and len(text) > 400 * most_lines):
            painted.append(self.line(Cell("(cut; --full shows all of it)", Colour.DIM), indent=indent))
        return painted


def sanitize(text: str) -> str:
    """The text on one line, without control sequences."""
    text = text[:_MOST_SHOWN]
    if not (text.isascii() and text.isprintable()):
        text = _without_unseen(_ESCAPES.sub("", text))
    return " ".join(text.split())


def sanitize_lines(text: str) -> list[str]:
    """The lines of a text without control sequences; tabs become spaces."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").expandtabs(4)
    return [_without_unseen(line) if not line.isprintable() else line for line in _ESCAPES.sub("", text).split("\n")]


def reveal_lines(text: str) -> list[str]:
    """The lines of a text that a person has to judge: complete, with invisible characters written as their codes."""
    lines = text.replace("\r\n", "\n").expandtabs(4).split("\n")
    return ["".join(one if one.isprintable() else f"<U+{ord(one):04X}>" for one in line) for line in lines]


def _without_unseen(text: str) -> str:
    kept = []
    for letter in text:
        if letter in "\n\r\t\v\f\u2028\u2029\x85":
            kept.append(" ")
        elif letter != "\ufe0f" and unicodedata.category(letter) not in _UNSEEN:
            kept.append(letter)
    return "".join(kept)


def width(text: str) -> int:
    """How many columns a terminal uses for it."""
    if text.isascii():
        return len(text)
    return sum(_letter_width(letter) for letter in text)


def _letter_width(letter: str) -> int:
    if unicodedata.combining(letter) or unicodedata.category(letter) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def cut(text: str, columns: int, mark: str = "…") -> str:
    """At most so many columns, with a mark where something is missing."""
    if len(text) <= columns and width(text) <= columns:
        return text
    if columns < 1:
        return ""
    kept, used = [], 0
    for letter in text:
        used += _letter_width(letter)
        if used > columns - 1:
            break
        kept.append(letter)
    return "".join(kept).rstrip() + mark


def wrap(line: str, columns: int) -> list[str]:
    """Lines of at most so many columns, broken at spaces where there are any, but not inside a command in backquotes;
    keeps the indentation of the first."""
    if width(line) <= columns:
        return [line] if line.strip() else []
    lines, current = [], " " * min(len(line) - len(line.lstrip()), columns // 2)
    for word in _UNBROKEN.findall(line):
        while width(word) > columns:
            piece = _fitting(word, columns)
            lines += [current] if current.strip() else []
            lines.append(piece)
            word, current = word[len(piece) :], ""
        joined = f"{current} {word}" if current.strip() else current + word
        if width(joined) <= columns:
            current = joined
        else:
            lines.append(current)
            current = word
    return [*lines, current] if current.strip() else lines


def _fitting(word: str, columns: int) -> str:
    used = 0
    for position, letter in enumerate(word):
        used += _letter_width(letter)
        if used > columns:
            return word[: max(position, 1)]
    return word


def duration(seconds: float) -> str:
    """12s, 3m 04s, 2h 05m, 3d 04h."""
    total = max(0, int(seconds))
    if total < 60:
        return f"{total}s"
    if total < 3600:
        return f"{total // 60}m {total % 60:02}s"
    if total < 86400:
        return f"{total // 3600}h {total % 3600 // 60:02}m"
    return f"{total // 86400}d {total % 86400 // 3600:02}h"


def fine_duration(seconds: float) -> str:
    """With tenths of a second below ten seconds."""
    return f"{seconds:.1f}s" if 0 <= seconds < 9.95 else duration(seconds)


def clock(moment: float) -> str:
    """The time of day, after the date if it is not today."""
    then, now = time.localtime(moment), time.localtime()
    today = (then.tm_year, then.tm_yday) == (now.tm_year, now.tm_yday)
    return time.strftime("%H:%M:%S" if today else "%Y-%m-%d %H:%M", then)


def size(number: int) -> str:
    amount = float(number)
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 10 else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TB"


def count(number: int, one: str, many: str = "") -> str:
    """1 ticket, 2 tickets."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def numbers(ids: Iterable[int]) -> str:
    return ", ".join(str(id) for id in ids)


def thousands(tokens: int) -> str:
    """812, 12.3k, 4.5M."""
    if tokens < 1000:
        return str(tokens)
    return f"{tokens / 1000:.1f}k" if tokens < 1_000_000 else f"{tokens / 1_000_000:.1f}M"
