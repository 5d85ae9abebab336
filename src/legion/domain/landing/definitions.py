"""The definitions in a file, by which two changes are compared.

Functions, classes and methods of Python, tables of TOML, keys of JSON, sections of Markdown. A file of any other kind,
or one that cannot be read, has none.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

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
            return tuple(_python(ast.parse(text).body, ""))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
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
