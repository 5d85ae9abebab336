"""Text for terminals: removes control sequences, measures, cuts, wraps, and formats times, sizes and counts.

Text from outside must pass `sanitize`, `sanitize_lines` or `reveal_lines` before any client shows it.
"""

from __future__ import annotations

import re
import time
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from legion.wire.text import count as count
from legion.wire.text import reveal

_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c]{0,4096}(?:\x07|\x1b\\|\x9c)"  # OSC: titles, links, clipboard
    r"|\x1b[PX^_][^\x1b]{0,4096}\x1b\\"  # DCS and its like
    r"|\x1b[ -/]*[0-~]"
)
_UNBROKEN = re.compile(r"(?:`[^`]*`|\S)+")
"""A word, or a command in backquotes, which a person copies in one piece."""
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_BREAKS = re.compile("[\n\r\t\v\f\x85\u2028\u2029]")
_JOINERS = re.compile("[\u200c\u200d\ufe0e\ufe0f\U000e0000-\U000e0fff]")
"""What `reveal` leaves inside emoji and joined letters. Terminals disagree about its width, so a line is without it."""
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


def sanitize(text: str) -> str:
    """The text on one line, without control sequences; what a terminal would not show is a mark such as <U+202E>."""
    text = text[:_MOST_SHOWN]
    if not (text.isascii() and text.isprintable()):
        text = _marked(_ESCAPES.sub("", text))
    return " ".join(text.split())


def sanitize_lines(text: str) -> list[str]:
    """The lines of a text without control sequences, marked as in `sanitize`; tabs become spaces."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").expandtabs(4)
    return [_marked(line) if not line.isprintable() else line for line in _ESCAPES.sub("", text).split("\n")]


def reveal_lines(text: str) -> list[str]:
    """The lines of a text that a person has to judge: complete, with invisible characters written as their codes."""
    lines = text.replace("\r\n", "\n").expandtabs(4).split("\n")
    return [line if line.isprintable() else _complete(line) for line in lines]


def _marked(text: str) -> str:
    shown = _JOINERS.sub("", reveal(_BREAKS.sub(" ", text)))
    return "".join(one if unicodedata.category(one) not in _UNSEEN else f"<U+{ord(one):04X}>" for one in shown)


def _complete(line: str) -> str:
    return "".join(one if one.isprintable() or _JOINERS.match(one) else f"<U+{ord(one):04X}>" for one in reveal(line))


def width(text: str) -> int:
    """How many columns a terminal uses for it."""
    if text.isascii():
        return len(text)
    return sum(_letter_width(letter) for letter in text)


def _letter_width(letter: str) -> int:
    if unicodedata.combining(letter) or unicodedata.category(letter) in ("Mn", "Me", "Cf"):
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


def numbers(ids: Iterable[int]) -> str:
    return ", ".join(str(id) for id in ids)


def thousands(tokens: int) -> str:
    """812, 12.3k, 4.5M."""
    if tokens < 1000:
        return str(tokens)
    return f"{tokens / 1000:.1f}k" if tokens < 1_000_000 else f"{tokens / 1_000_000:.1f}M"
