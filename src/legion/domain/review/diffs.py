"""Parses the text of `git diff` into files, hunks and lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}


@dataclass(frozen=True, kw_only=True)
class DiffLine:
    number: int
    """In the old file (a removed line) or in the new one (an added line)."""
    text: str


@dataclass(frozen=True, kw_only=True)
class Hunk:
    removed: tuple[DiffLine, ...]
    added: tuple[DiffLine, ...]
    text: str
    """As git wrote it, header first."""

    @property
    def place(self) -> int:
        """The hunk's first line in the new file."""
        found = _HUNK.match(self.text)
        return int(found[3]) if found else 1


@dataclass(frozen=True, kw_only=True)
class FileDiff:
    path: str
    new: bool = False
    gone: bool = False
    header: str = ""
    """Everything before the first hunk."""
    hunks: tuple[Hunk, ...] = field(default=())

    @property
    def removed(self) -> tuple[DiffLine, ...]:
        return tuple(line for hunk in self.hunks for line in hunk.removed)

    @property
    def added(self) -> tuple[DiffLine, ...]:
        return tuple(line for hunk in self.hunks for line in hunk.added)


def read(text: str) -> tuple[FileDiff, ...]:
    """Every file of a `git diff` without renames. A file whose lines git does not show has no hunks."""
    return tuple(_file(part) for part in _parts(text.split("\n"), "diff --git "))


def _parts(lines: list[str], mark: str) -> Iterator[list[str]]:
    """Parts that start with the mark. A line of a hunk starts with one of ' +-\\', so it never looks like one."""
    piece: list[str] = []
    for line in lines:
        if line.startswith(mark) and piece:
            yield piece
            piece = []
        if piece or line.startswith(mark):
            piece.append(line)
    if piece:
        yield piece


def _file(lines: list[str]) -> FileDiff:
    first = next((at for at, line in enumerate(lines) if _HUNK.match(line)), len(lines))
    header = lines[:first]
    return FileDiff(
        path=_path(header),
        new=any(line.startswith("new file mode") for line in header),
        gone=any(line.startswith("deleted file mode") for line in header),
        header="\n".join(header),
        hunks=tuple(_hunk(piece) for piece in _parts(lines[first:], "@@ -")),
    )


def _path(header: list[str]) -> str:
    named = {line[:4]: line[4:] for line in header if line.startswith(("--- ", "+++ "))}
    for side in ("+++ ", "--- "):
        name = named.get(side, "/dev/null")
        if name != "/dev/null":
            return _plain(name.removesuffix("\t"))[2:]
    # Without lines (an empty or a binary file) only the first line names it, twice and equally long.
    rest = header[0].removeprefix("diff --git ")
    return _plain(rest[: len(rest) // 2])[2:]


def _plain(name: str) -> str:
    """Without the quotes that git puts around unusual names."""
    if not name.startswith('"'):
        return name
    raw = name.strip('"').encode("utf-8", "surrogateescape")
    return _ESCAPE.sub(lambda found: _unescaped(found[1]), raw).decode("utf-8", "backslashreplace")


def _unescaped(what: bytes) -> bytes:
    return bytes([int(what, 8) & 255]) if len(what) == 3 else _LETTERS.get(what, what)


def _hunk(lines: list[str]) -> Hunk:
    found = _HUNK.match(lines[0])
    assert found is not None, "a hunk begins with its header"
    before, after = int(found[1]), int(found[3])
    removed, added = [], []
    for line in lines[1:]:
        if line.startswith("-"):
            removed.append(DiffLine(number=before, text=line[1:]))
            before += 1
        elif line.startswith("+"):
            added.append(DiffLine(number=after, text=line[1:]))
            after += 1
        elif line.startswith(" "):
            before, after = before + 1, after + 1
    return Hunk(removed=tuple(removed), added=tuple(added), text="\n".join(lines).rstrip("\n") + "\n")
