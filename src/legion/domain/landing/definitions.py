"""The definitions in a file, by which two changes are compared.

Functions, classes and methods of Python, tables of TOML, keys of JSON, sections of Markdown. A file of any other kind,
or one that cannot be read, has none.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from legion.domain.text import python_statements

_HEADS = {
    ".toml": re.compile(r"^\s*\[+([^\]]+)\]+"),
    ".md": re.compile(r"^#+\s+(.+?)\s*#*$"),
    ".json": re.compile(r'^(?: {2}| {4}|\t)"([^"]+)"\s*:'),
}


@dataclass(frozen=True, kw_only=True)
class Definition:
    name: str
    first: int
    last: int


def definitions(path: str, text: str) -> tuple[Definition, ...]:
    suffix = path[path.rfind(".") :] if "." in path else ""
    if suffix in (".py", ".pyi"):
        try:
            return tuple(_python(python_statements(text) or [], ""))
        except RecursionError:
            return ()
    head = _HEADS.get(suffix)
    return () if head is None else tuple(_sections(head, text.split("\n")))


def names_at(found: tuple[Definition, ...], first: int, last: int) -> tuple[str, ...]:
    """Of the lines from first to last: the innermost definitions."""
    there = [one for one in found if one.first <= last and first <= one.last]
    return tuple(one.name for one in there if not any(inner.name.startswith(f"{one.name}.") for inner in there))


def changed(path: str, before: str, after: str) -> dict[str, tuple[str, str]]:
    """By name: both texts of the definitions that a change touches; empty where one side has none."""
    old, new = own_texts(path, before), own_texts(path, after)
    return {name: (old.get(name, ""), new.get(name, "")) for name in old | new if old.get(name) != new.get(name)}


def own_texts(path: str, text: str) -> dict[str, str]:
    """Without the text of those inside of it."""
    lines, found = text.split("\n"), definitions(path, text)
    owner: dict[int, str] = {}
    for one in sorted(found, key=lambda one: one.first - one.last):
        owner.update(dict.fromkeys(range(one.first, one.last + 1), one.name))
    own = dict.fromkeys(owner.values(), "")
    for number, name in sorted(owner.items()):
        own[name] += f"{lines[number - 1]}\n"
    return own


def _python(body: list[ast.stmt], above: str) -> Iterator[Definition]:
    for one in body:
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{above}{one.name}"
            first = min([one.lineno, *(decorator.lineno for decorator in one.decorator_list)])
            yield Definition(name=name, first=first, last=one.end_lineno or one.lineno)
            if isinstance(one, ast.ClassDef):
                yield from _python(one.body, f"{name}.")
        elif isinstance(one, ast.If | ast.Try):
            yield from _python([*one.body, *one.orelse], above)


def _sections(head: re.Pattern[str], lines: list[str]) -> Iterator[Definition]:
    starts = [(number, found[1]) for number, line in enumerate(lines, 1) if (found := head.match(line))]
    for place, (first, name) in enumerate(starts, 1):
        after = starts[place][0] if place < len(starts) else len(lines) + 1
        yield Definition(name=name.strip(), first=first, last=after - 1)


# The first guess of what a ticket will change: names in its text that its code defines.
#
# A claim is `path::name`, or `path::` for a file as a whole. What is in a class is claimed with it: `Cart` and
# `Cart.__init__` meet.

_FENCED = re.compile(r"^ *(```|~~~).*?^ *\1", re.MULTILINE | re.DOTALL)
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_QUOTED = re.compile(r"`([^`\n]+)`")
_LIKE_CODE = re.compile(r"\w_\w|[a-z][A-Z]|\w\.\w|^__\w+__$")
_PATH = re.compile(r"(?<![\w/.-])[\w.-]+(?:/[\w.-]+)*\.\w{1,4}\b")
_MOST_MEANT = 3


@dataclass(frozen=True, kw_only=True)
class Named:
    """What a text names: examples in it are left out."""

    words: frozenset[str]
    """What looks like code, or is quoted as code."""
    paths: frozenset[str]


def named_in(text: str) -> Named:
    prose = _FENCED.sub("", text)
    quoted = {one[0] for part in _QUOTED.findall(prose) for one in _DOTTED.finditer(part)}
    bare = {one[0] for one in _DOTTED.finditer(prose) if _LIKE_CODE.search(one[0])}
    return Named(words=frozenset(quoted | bare), paths=frozenset(_PATH.findall(prose)))


def claims(named: Named, files: Mapping[str, Collection[str]]) -> frozenset[str]:
    """`files`: by path, the names of its definitions. Where the text names files, only what is in them is meant; one of
    them as a whole, if the text names nothing in any.
    """
    own = {path for path in files if any(f"/{path}".endswith(f"/{one}") for one in named.paths)}
    found = set()
    for word in named.words:
        fits = [f"{path}::{name}" for path in own or files for name in files[path] if _fits(name, word, near=bool(own))]
        if len(fits) <= _MOST_MEANT:
            found.update(fits)
    inner = {one for one in found if not any(other.startswith(f"{one}.") for other in found)}
    return frozenset(inner or {f"{path}::" for path in own})


def _fits(name: str, word: str, *, near: bool) -> bool:
    return f".{name}".endswith((f".{word}", f"_{word}") if near else f".{word}")


def meeting(mine: Iterable[str], theirs: Iterable[str]) -> frozenset[str]:
    """Those of mine that the others claim, too, as a whole or in part."""
    theirs = frozenset(theirs)
    above = {one for claim in theirs for one in _above(claim)}
    return frozenset(claim for claim in mine if claim in above or not theirs.isdisjoint(_above(claim)))


def nearness(mine: Collection[str], theirs: Collection[str]) -> tuple[int, int]:
    """How many claims, and how many files, one side shares with the other: what is larger is nearer."""
    files = ({claim.partition("::")[0] for claim in side} for side in (mine, theirs))
    return len(meeting(mine, theirs)), len(frozenset.intersection(*map(frozenset, files)))


def _above(claim: str) -> Iterator[str]:
    """The claim itself, what it is in, and its file."""
    path, mark, name = claim.partition("::")
    parts = name.split(".") if name else []
    return (f"{path}{mark}{'.'.join(parts[:last])}" for last in range(len(parts) + 1))
