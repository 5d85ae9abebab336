"""Merges two changes of a file definition by definition, where git's merge of lines stops.

What one side changed wins over what the other left alone, and what both added is kept. Inside a definition that both
changed, lines are merged, then words. The result must still parse. What stays open is a refusal with its reason.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from legion.domain.landing.definitions import Definition, definitions
from legion.domain.text import python_statements

_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_WORDS = re.compile(r"\s+|\w+|.", re.DOTALL)
_PYTHON = (".py", ".pyi")
_MOST = 100_000
"""Characters of a file."""
_MOST_PIECES = 2000
"""Lines or words of a definition."""


class NotMergeable(Exception):
    """Why the two sides of a file, or of one of its definitions, cannot be merged."""


@dataclass(frozen=True)
class Merged:
    text: str
    names: tuple[str, ...]
    """The definitions that both sides changed; what is outside of all is the empty name."""


def merged(path: str, base: str, ours: str, theirs: str) -> Merged:
    """`ours` stands first where both added something at one place. Raises NotMergeable."""
    parse = _parser(path)
    if parse is None or max(map(len, (base, ours, theirs))) > _MOST:
        raise NotMergeable("its kind of file is merged by lines alone")
    old, mine, other = (
        _parts(path, text if text.endswith("\n") else f"{text}\n", parse) for text in (base, ours, theirs)
    )
    both: list[str] = []
    text = "".join(_merge_parts(old, mine, other, both))
    if not parse(text):
        raise NotMergeable("what both sides together make is not valid")
    return Merged(text, tuple(both))


def _parser(path: str) -> Callable[[str], bool] | None:
    if path.endswith(_PYTHON):
        return lambda text: python_statements(text) is not None
    if path.endswith(".toml"):
        return _tried(tomllib.loads)
    if path.endswith(".json"):
        return _tried(json.loads)
    return (lambda _: True) if path.endswith(".md") else None


def _tried(read: Callable[[str], object]) -> Callable[[str], bool]:
    def parses(text: str) -> bool:
        try:
            read(text)
        except (ValueError, RecursionError):
            return False
        return True

    return parses


Parts = dict[tuple[str, int], str]
"""The text of each definition without those inside of it, in order; the number tells those of one name apart. What is
behind an inner one has the outer one's name with a plus and a number; a file's own lines have no name."""


def _parts(path: str, text: str, parse: Callable[[str], bool]) -> Parts:
    if not parse(text):
        raise NotMergeable("a side of it is not valid")
    lines = _lines(text)
    owner = [("", -1)] * len(lines)
    seen: dict[str, int] = {}
    found = sorted(definitions(path, text), key=lambda one: (one.first, -one.last))
    for one in found:
        seen[one.name] = seen.get(one.name, -1) + 1
        last_line = min(one.last, len(lines))
        owner[one.first - 1 : last_line] = [(one.name, seen[one.name])] * (last_line - one.first + 1)
    _attach(found, lines, owner)
    parts: Parts = {}
    gaps: dict[tuple[str, int], int] = {}
    last: tuple[str, int] | None = None
    for key, line in zip(owner, lines, strict=True):
        if key != last and key in parts:
            # The rest of a class behind one of its methods, or of a file behind a definition.
            gaps[key] = gaps.get(key, 0) + 1
        last = key
        named = (f"{key[0]}+{gaps[key]}", key[1]) if gaps.get(key) else key
        parts[named] = parts.get(named, "") + line
    return parts


def _attach(found: Iterable[Definition], lines: Sequence[str], owner: list[tuple[str, int]]) -> None:
    """Comments and empty lines above a definition move with it."""
    for one in found:
        at = one.first - 2
        while at >= 0 and (not (bare := lines[at].strip()) or bare.startswith("#")) and owner[at][0] != one.name:
            if not one.name.startswith(f"{owner[at][0]}.") and owner[at][0]:
                break
            owner[at] = owner[one.first - 1]
            at -= 1


def _merge_parts(base: Parts, ours: Parts, theirs: Parts, both: list[str]) -> list[str]:
    order = _order(base, ours, theirs)
    # What one side removed has no place in the order, and is looked at all the same.
    keys = dict.fromkeys((*order, *base))
    texts = {key: _merge_part(key[0], base.get(key), ours.get(key), theirs.get(key), both) for key in keys}
    return [text for text in texts.values() if text is not None]


def _merge_part(name: str, base: str | None, ours: str | None, theirs: str | None, both: list[str]) -> str | None:
    if ours == theirs or theirs == base:
        return ours
    if ours == base:
        return theirs
    shown = name.partition("+")[0]
    if base is None:
        raise NotMergeable(f"both add {shown or 'lines at one place'}")
    if ours is None or theirs is None:
        raise NotMergeable(f"one side removes {shown or 'lines'} that the other changes")
    both.append(shown)
    for split in (_lines, _WORDS.findall):
        found = merge_three(split(base), split(ours), split(theirs))
        if found is not None:
            return "".join(found)
    raise NotMergeable(f"both change the same words of {shown or 'lines outside of definitions'}")


def _order(base: Parts, ours: Parts, theirs: Parts) -> list[tuple[str, int]]:
    """Ours, and what they added behind what it followed there. Raises NotMergeable where one side moved things."""
    for side in (ours, theirs):
        common = [key for key in side if key in base]
        if common != [key for key in base if key in side]:
            raise NotMergeable("one side moves definitions")
    order = list(ours)
    before: tuple[str, int] | None = None
    for key in theirs:
        if key not in ours and key not in base:
            at = order.index(before) + 1 if before in order else 0
            # Behind what we added there ourselves.
            while at < len(order) and order[at] not in base and order[at] not in theirs:
                at += 1
            order.insert(at, key)
        if key in order:
            before = key
    return order


def _lines(text: str) -> list[str]:
    return _LINES.findall(text)


def merge_three(base: Sequence[str], ours: Sequence[str], theirs: Sequence[str]) -> list[str] | None:
    """Both changes of a sequence; None where they overlap. Where both only add at one place, ours stands first."""
    if max(map(len, (base, ours, theirs))) > _MOST_PIECES:
        return None
    mine, other = _edits(base, ours), _edits(base, theirs)
    made: list[str] = []
    at = 0
    while mine or other:
        if mine and other and _touch(mine[0], other[0]):
            one, two = mine.pop(0), other.pop(0)
            if one != two and not (one.adds and two.adds):
                return None
            edit = one if one == two else _Edit(one.first, one.last, [*one.new, *two.new])
        else:
            edit = (mine if not other or (mine and mine[0].first <= other[0].first) else other).pop(0)
        made += [*base[at : edit.first], *edit.new]
        at = edit.last
    return [*made, *base[at:]]


@dataclass(frozen=True)
class _Edit:
    """In place of the base's pieces from first to last."""

    first: int
    last: int
    new: list[str]

    @property
    def adds(self) -> bool:
        return self.first == self.last


def _edits(base: Sequence[str], side: Sequence[str]) -> list[_Edit]:
    found = SequenceMatcher(None, base, side, autojunk=False).get_opcodes()
    return [_Edit(first, last, list(side[start:end])) for kind, first, last, start, end in found if kind != "equal"]


def _touch(one: _Edit, other: _Edit) -> bool:
    """Edits without anything between them: their order is not known."""
    return one.first <= other.last and other.first <= one.last
