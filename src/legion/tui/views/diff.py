"""A change as rows: files with folds, one column or side by side, comments below their lines. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from legion.client.text.rows import Row, clean, fit, paragraph, row
from legion.client.text.terminal import Cell, Colour, cut, reveal_lines, width

_LONGEST = 400
"""Longer lines, as in minified files, are not coloured."""
_COLOURS = (
    ("Token.Comment", Colour.DIM),
    ("Token.Literal.String", Colour.YELLOW),
    ("Token.Literal.Number", Colour.YELLOW),
    ("Token.Keyword", Colour.CYAN),
    ("Token.Name.Function", Colour.BLUE),
    ("Token.Name.Class", Colour.BLUE),
    ("Token.Name.Decorator", Colour.BLUE),
    ("Token.Name.Tag", Colour.CYAN),
)


class Colouring:
    """Colours the lines of one file. Pygments is loaded when the first file is shown."""

    def __init__(self, path: str) -> None:
        self._lexer = _lexer(path)

    def cells(self, line: str) -> list[Cell]:
        if self._lexer is None or len(line) > _LONGEST or not line.strip():
            return [Cell(line)]
        cells: list[Cell] = []
        for kind, text in self._lexer.get_tokens(line):
            shown = text.replace("\n", "")
            if shown:
                cells.append(Cell(shown, _colour(str(kind))))
        # The lexer drops spaces at the ends of a line where its language ignores them.
        lost = len(line) - len(line.lstrip()) - (len(cells[0].text) - len(cells[0].text.lstrip()) if cells else 0)
        return [Cell(" " * lost), *cells] if lost > 0 else cells


def _colour(kind: str) -> Colour:
    return next((colour for start, colour in _COLOURS if kind.startswith(start)), Colour.NONE)


def _lexer(path: str) -> Any:  # noqa: ANN401 - Pygments has no types
    from pygments.lexers import get_lexer_for_filename  # type: ignore[import-untyped]
    from pygments.util import ClassNotFound  # type: ignore[import-untyped]

    try:
        return get_lexer_for_filename(path, stripnl=False, stripall=False, ensurenl=False)
    except ClassNotFound:
        return None


SIDE_BY_SIDE = 118
"""Columns from which old and new stand side by side: a terminal of 120, without its scroll bar."""
_NUMBERS = 5
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")


class DiffKind(Enum):
    SAME = " "
    ADDED = "+"
    REMOVED = "-"


@dataclass(frozen=True)
class ShownLine:
    kind: DiffKind
    old: int | None
    new: int | None
    text: str

    @property
    def place(self) -> int:
        """Its number in the file as it is; of a removed line in the file as it was."""
        return self.new or self.old or 0


@dataclass(frozen=True)
class ShownHunk:
    head: str
    lines: tuple[ShownLine, ...]


@dataclass(frozen=True)
class ShownFile:
    path: str
    notes: tuple[str, ...]
    """New file, deleted, renamed, binary."""
    hunks: tuple[ShownHunk, ...]

    @property
    def added(self) -> int:
        return sum(line.kind is DiffKind.ADDED for hunk in self.hunks for line in hunk.lines)

    @property
    def removed(self) -> int:
        return sum(line.kind is DiffKind.REMOVED for hunk in self.hunks for line in hunk.lines)


@dataclass(frozen=True)
class CommentPlace:
    """A line of the change, as comments name it."""

    path: str
    kind: DiffKind
    line: int

    @property
    def key(self) -> str:
        return f"{self.kind.value}{self.line} {self.path}"

    @staticmethod
    def of(key: str) -> CommentPlace | None:
        number, space, path = key[1:].partition(" ")
        if not space or not number.isdigit() or key[:1] not in ("+", "-", " "):
            return None
        return CommentPlace(path, DiffKind(key[0]), int(number))


def parse(text: str) -> list[ShownFile]:
    """The files of git's diff. A line that is not of git's format is left out."""
    files: list[ShownFile] = []
    for part in re.split(r"^(?=diff --git )", text, flags=re.MULTILINE):
        if part.startswith("diff --git "):
            files.append(_file(part.split("\n")))
    return files


def _file(lines: list[str]) -> ShownFile:
    path = lines[0].rpartition(" b/")[2]
    notes: list[str] = []
    hunks: list[ShownHunk] = []
    at = 1
    while at < len(lines) and not lines[at].startswith("@@"):
        line = lines[at]
        if line.startswith("+++ b/"):
            path = line[6:].rstrip("\t")
        elif line.startswith(
            ("new file", "deleted file", "rename ", "Binary files", "old mode", "new mode", "similarity")
        ):
            notes.append(line)
        at += 1
    while at < len(lines):
        hunk, at = _hunk(lines, at)
        if hunk is not None:
            hunks.append(hunk)
    return ShownFile(clean(path), tuple(notes), tuple(hunks))


def _hunk(lines: list[str], at: int) -> tuple[ShownHunk | None, int]:
    found = _HUNK.match(lines[at])
    if found is None:
        return None, at + 1
    old, new = int(found[1]), int(found[2])
    head, made = lines[at], []
    at += 1
    while at < len(lines) and not lines[at].startswith("@@"):
        sign, text = lines[at][:1], lines[at][1:]
        if sign == "+":
            made.append(ShownLine(DiffKind.ADDED, None, new, text))
            new += 1
        elif sign == "-":
            made.append(ShownLine(DiffKind.REMOVED, old, None, text))
            old += 1
        elif sign == " ":
            made.append(ShownLine(DiffKind.SAME, old, new, text))
            old, new = old + 1, new + 1
        at += 1
    return ShownHunk(head, tuple(made)), at


def rows(files: Sequence[ShownFile], available: int, folded: Collection[str], comments: Mapping[str, str]) -> list[Row]:
    """Rows of lines have the key of their CommentPlace, heads of files `file PATH`."""
    made: list[Row] = []
    for file in files:
        made.append(_head(file, file.path in folded, comments))
        if file.path in folded:
            continue
        made += [row(Cell(f"  {clean(note)}", Colour.DIM)) for note in file.notes]
        colouring = Colouring(file.path)
        for hunk in file.hunks:
            made.append(row(Cell(cut(f"  {clean(hunk.head)}", available), Colour.BLUE)))
            lines = _side_by_side if available >= SIDE_BY_SIDE else _one_column
            made += lines(file, hunk, available, comments, colouring)
    return made


def _head(file: ShownFile, folded: bool, comments: Mapping[str, str]) -> Row:
    number = sum((place := CommentPlace.of(key)) is not None and place.path == file.path for key in comments)
    return row(
        Cell("▸ " if folded else "▾ ", Colour.DIM),
        Cell(file.path, Colour.BOLD),
        Cell(f"  +{file.added}", Colour.GREEN),
        Cell(f" -{file.removed}", Colour.RED),
        Cell(f"  {number} commented" if number else "", Colour.YELLOW),
        key=f"file {file.path}",
    )


_TINT = {DiffKind.ADDED: Colour.GREEN, DiffKind.REMOVED: Colour.RED, DiffKind.SAME: Colour.NONE}


def _one_column(
    file: ShownFile, hunk: ShownHunk, available: int, comments: Mapping[str, str], colouring: Colouring
) -> Iterator[Row]:
    for line in hunk.lines:
        key = CommentPlace(file.path, line.kind, line.place).key
        number = f"{line.old or '':>{_NUMBERS}}{line.new or '':>{_NUMBERS}} "
        cells = (
            Cell(number, Colour.DIM),
            Cell(f"{line.kind.value} ", _TINT[line.kind]),
            *colouring.cells(_shown(line.text)),
        )
        yield Row(fit(cells, available), key, _TINT[line.kind])
        yield from _comment(comments.get(key, ""), available)


def _side_by_side(
    file: ShownFile, hunk: ShownHunk, available: int, comments: Mapping[str, str], colouring: Colouring
) -> Iterator[Row]:
    half = (available - 1) // 2
    for old, new in _pairs(hunk.lines):
        line = new or old
        assert line is not None
        key = CommentPlace(file.path, line.kind, line.place).key
        left = _half(old, old.old if old else None, half, colouring)
        right = _half(new, new.new if new else None, half, colouring)
        # A row has one tint: where a removed line is next to an added one, their signs show which is which.
        alone = old is None or new is None
        tint = _TINT[line.kind] if alone and line.kind is not DiffKind.SAME else Colour.NONE
        yield Row((*left, Cell("│", Colour.DIM), *right), key, tint)
        yield from _comment(comments.get(key, ""), available)
        if old is not None and old is not new:
            yield from _comment(comments.get(CommentPlace(file.path, old.kind, old.place).key, ""), available)


def _half(line: ShownLine | None, number: int | None, room: int, colouring: Colouring) -> tuple[Cell, ...]:
    if line is None:
        return (Cell(" " * room),)
    sign = Cell(f"{line.kind.value} ", _TINT[line.kind])
    cells = fit((Cell(f"{number or '':>{_NUMBERS}} ", Colour.DIM), sign, *colouring.cells(_shown(line.text))), room)
    return (*cells, Cell(" " * (room - sum(width(cell.text) for cell in cells))))


def _pairs(lines: Sequence[ShownLine]) -> Iterator[tuple[ShownLine | None, ShownLine | None]]:
    """Removed lines next to the added ones that follow them; equal lines next to themselves."""
    removed: list[ShownLine] = []
    added: list[ShownLine] = []
    for line in (*lines, None):
        if line is not None and line.kind is DiffKind.REMOVED and not added:
            removed.append(line)
            continue
        if line is not None and line.kind is DiffKind.ADDED:
            added.append(line)
            continue
        for number in range(max(len(removed), len(added))):
            yield (removed[number] if number < len(removed) else None, added[number] if number < len(added) else None)
        removed, added = [], []
        if line is not None and line.kind is DiffKind.REMOVED:
            removed.append(line)
        elif line is not None:
            yield line, line


def _comment(text: str, available: int) -> list[Row]:
    return paragraph(f"✎ {text}", available, indent=_NUMBERS * 2 + 3, colour=Colour.YELLOW) if text else []


def _shown(text: str) -> str:
    return reveal_lines(text)[0]


def feedback(comments: Mapping[str, str], files: Sequence[ShownFile]) -> str:
    """All comments as one text for the agent: place, line, comment, in the order of the change."""
    texts = {
        CommentPlace(file.path, line.kind, line.place).key: line.text
        for file in files
        for hunk in file.hunks
        for line in hunk.lines
    }
    ordered = sorted(comments, key=lambda key: list(texts).index(key) if key in texts else len(texts))
    parts = []
    for key in ordered:
        place = CommentPlace.of(key)
        if place is not None:
            gone = " (removed)" if place.kind is DiffKind.REMOVED else ""
            quoted = f"\n> {texts[key].strip()}" if texts.get(key, "").strip() else ""
            parts.append(f"{place.path}:{place.line}{gone}{quoted}\n{comments[key]}")
    return "\n\n".join(parts)
