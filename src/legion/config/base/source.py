"""The text of one settings file: parses it as TOML and locates faults in it.

Knows no setting. A repository's file is untrusted, so nothing in it may cost much time or be invisible to a reader.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from legion.domain.errors import BadInput

LONGEST = 64 * 1024
"""Characters; no honest settings file has more."""

MOST_DOTS = 200
"""In one line: the time to parse a key grows with the square of its parts, up to a minute for a file full of dots."""

HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control characters and those that change the writing direction: the text read before trusting must be what runs."""

_HEADER = re.compile(r"\s*\[\[?([^\[\]]+)\]\]?\s*(?:#.*)?$")
_ASSIGNMENT = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")
_PART = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")

Path = Sequence[str]
"""The path of a setting: ("agents", "parallel")."""


@dataclass(frozen=True)
class SettingsText:
    text: str
    origin: str
    """The file's name in messages."""
    table: Mapping[str, object]

    def fault(self, path: Path, said: str) -> BadInput:
        """The error for a setting: `said` continues after its name and has no full stop."""
        return BadInput(f"{self.place(path)} `{printable('.'.join(path))}` {said}.")

    def place(self, path: Path) -> str:
        line = line_of(self.text, path)
        return f"In {self.origin}, line {line}," if line else f"In {self.origin}"


def read(text: str, origin: str) -> SettingsText:
    """Raises BadInput where the text is not TOML or not an acceptable settings file."""
    if len(text) > LONGEST:
        raise BadInput(f"{origin} is larger than {LONGEST // 1024} KB: keep only settings in it.")
    unified = text.replace("\r\n", "\n").removesuffix("\n") + "\n"  # the end of a file has no line in tomllib's words
    if any(line.count(".") > MOST_DOTS for line in unified.split("\n")):
        raise BadInput(f"{origin} has a line with more than {MOST_DOTS} dots: no setting needs them.")
    hidden = HIDDEN.search(unified)
    if hidden:
        line = unified.count("\n", 0, hidden.start()) + 1
        raise BadInput(f"{origin} has the invisible character U+{ord(hidden[0]):04X} in line {line}: remove it.")
    try:
        return SettingsText(unified, origin, tomllib.loads(unified))
    except RecursionError:
        raise BadInput(f"{origin} nests its values too deeply: settings are plain values and lists.") from None
    except tomllib.TOMLDecodeError as fault:
        said = printable(str(fault), 200)
        raise BadInput(f"{origin} is not valid TOML, so fix it: {said[:1].lower()}{said[1:]}.") from None
    except ValueError:
        raise BadInput(f"{origin} has a number that no setting can have: make it shorter.") from None


def line_of(text: str, path: Path) -> int | None:
    """The line where a setting starts, or that of the nearest table around it; None where it is unknown."""
    best, depth = None, 0
    for line, here in _statements(text):
        shared = _shared(here, path)
        if shared > depth and shared == min(len(here), len(path)):
            best, depth = line, shared
    return best


def _statements(text: str) -> Iterator[tuple[int, list[str]]]:
    """Every header and assignment as (line, full path). Lines inside long strings are skipped."""
    table: list[str] = []
    fence = ""
    for number, line in enumerate(text.split("\n"), start=1):
        if fence:
            fence = "" if fence in line else fence
            continue
        header = _HEADER.match(line)
        assignment = _ASSIGNMENT.match(line)
        if header:
            table = _parts(header[1])
            yield number, table
        elif assignment:
            yield number, table + _parts(assignment[1])
        fence = next((mark for mark in ('"""', "'''") if line.count(mark) == 1), "")


def _parts(key: str) -> list[str]:
    return [part.strip("\"'") for part in _PART.findall(key)]


def _shared(one: Path, other: Path) -> int:
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


def printable(text: str, longest: int = 60) -> str:
    """Untrusted text for a message: short, on one line, without control characters."""
    shown = text if text.isprintable() else ascii(text)[1:-1]
    return shown if len(shown) <= longest else f"{shown[: longest - 3]}..."
