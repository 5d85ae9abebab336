"""The definitions in a file, by which two changes are compared.

Functions, classes and methods of Python, tables of TOML, keys of JSON, sections of Markdown. A file of any other kind,
or one that cannot be read, has none.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

_LONGEST = 1 << 20
"""Characters: a longer file is not read."""
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
    """The numbers of its lines."""
    depth: int = 0


def definitions(path: str, text: str) -> tuple[Definition, ...]:
    if len(text) > _LONGEST:
        return ()
    suffix = path[path.rfind(".") :] if "." in path else ""
    if suffix in (".py", ".pyi"):
        try:
            with warnings.catch_warnings(action="ignore"):
                return tuple(_python(ast.parse(text).body, "", 0))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return ()
    head = _HEADS.get(suffix)
    return () if head is None else tuple(_sections(head, text.splitlines()))


def names_at(found: tuple[Definition, ...], first: int, last: int) -> tuple[str, ...]:
    """Of the lines from first to last: the innermost definitions."""
    there = [one for one in found if one.first <= last and first <= one.last]
    return tuple(one.name for one in there if not any(inner.name.startswith(f"{one.name}.") for inner in there))


def changed(path: str, before: str, after: str) -> dict[str, tuple[str, str]]:
    """By name: both texts of the definitions that a change touches; empty where one side has none."""
    old, new = own_texts(path, before), own_texts(path, after)
    names = [*new, *(name for name in old if name not in new)]
    return {name: (old.get(name, ""), new.get(name, "")) for name in names if old.get(name) != new.get(name)}


def own_texts(path: str, text: str) -> dict[str, str]:
    """The text of each definition, without those inside of it."""
    lines, found = text.splitlines(), definitions(path, text)
    owner: dict[int, str] = {}
    for one in sorted(found, key=lambda one: one.depth):
        owner.update(dict.fromkeys(range(one.first, one.last + 1), one.name))
    own: dict[str, list[str]] = {one.name: [] for one in found}
    for number, name in sorted(owner.items()):
        if number <= len(lines):
            own[name].append(lines[number - 1])
    return {name: "\n".join(part) for name, part in own.items()}


def _python(body: list[ast.stmt], above: str, depth: int) -> Iterator[Definition]:
    for one in body:
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{above}{one.name}"
            first = min([one.lineno, *(decorator.lineno for decorator in one.decorator_list)])
            yield Definition(name=name, first=first, last=one.end_lineno or one.lineno, depth=depth)
            if isinstance(one, ast.ClassDef):
                yield from _python(one.body, f"{name}.", depth + 1)
        elif isinstance(one, ast.If | ast.Try):
            yield from _python([*one.body, *one.orelse], above, depth)


def _sections(head: re.Pattern[str], lines: list[str]) -> Iterator[Definition]:
    starts = [(number, found[1]) for number, line in enumerate(lines, 1) if (found := head.match(line))]
    for (first, name), (after, _) in zip(starts, [*starts[1:], (len(lines) + 1, "")], strict=True):
        yield Definition(name=name.strip(), first=first, last=after - 1)
