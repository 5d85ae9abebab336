"""Characters that a change adds and a screen does not show: code may read as other code than it is (Trojan Source)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from legion.domain.review.diffs import FileDiff
from legion.domain.text import hidden_in

_MOST = 200
"""Findings of a change; the first ones suffice for a decision."""
_NAMED = 3
_BYTE_ORDER_MARK = "\ufeff"
_DISGUISES = (range(0x202A, 0x202F), range(0x2066, 0x206A), range(0xE0000, 0xE0080))
"""Reorder what is shown, or hold a text that only programs read. Other findings may be a slip."""


@dataclass(frozen=True, kw_only=True)
class HiddenCharacter:
    path: str
    line: int
    code: str
    """U+202E"""

    @property
    def disguises(self) -> bool:
        """Is it of those that have no place in a source file, so that a person is asked?"""
        return any(int(self.code[2:], 16) in one for one in _DISGUISES)

    @property
    def sentence(self) -> str:
        return f"{self.path}:{self.line} has {self.code}"


def hidden_characters(files: Iterable[FileDiff]) -> tuple[HiddenCharacter, ...]:
    """Those that the change adds: a line that had them before and changes elsewhere is none."""
    found: list[HiddenCharacter] = []
    for file in files:
        before = Counter(letter for line in file.removed for letter in hidden_in(line.text))
        for line in file.added:
            # The mark of the encoding at the start of a file is no disguise.
            text = line.text.removeprefix(_BYTE_ORDER_MARK) if line.number == 1 else line.text
            for letter in dict.fromkeys(hidden_in(text.removesuffix("\r"))):
                before[letter] -= 1
                if before[letter] < 0:
                    found.append(HiddenCharacter(path=file.path, line=line.number, code=f"U+{ord(letter):04X}"))
    return tuple(found[:_MOST])


class HiddenPlace(Protocol):
    """A finding, here or as it travels to clients."""

    @property
    def path(self) -> str: ...

    @property
    def line(self) -> int: ...

    @property
    def code(self) -> str: ...


def warning(found: Sequence[HiddenPlace]) -> str:
    """One sentence; empty where there is nothing to warn of."""
    if not found:
        return ""
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    named = ", ".join(f"{one.code} in {one.path}:{one.line}" for one in found[:_NAMED])
    return f"The change adds characters that a screen does not show: {named}{more}."
