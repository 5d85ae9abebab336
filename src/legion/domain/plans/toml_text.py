"""A draft as TOML, for the person's editor: written with every ticket's fields, read back with the line of a fault.

[[ticket]]
key = "login"
title = "A page to log in"
criteria = [{text = "It has a form", proof = "[test]"}]
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from legion.domain.errors import BadInput
from legion.domain.plans import draft as drafts
from legion.domain.plans.draft import MalformedDraft, PlanDraft
from legion.domain.text import to_json

_HEADER = re.compile(r"^\s*\[\[\s*ticket\s*\]\]")
_NAMED = re.compile(r"`([a-z_]+)`")


def read(text: str, origin: str) -> PlanDraft:
    """Raises BadInput with the line of the first fault."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{origin} is not valid TOML: {str(error).rstrip('.')}. Fix it.") from None
    except RecursionError:
        raise BadInput(f"{origin} is nested too deeply; a plan is a list of [[ticket]].") from None
    try:
        return drafts.read(table, tickets="ticket")
    except MalformedDraft as wrong:
        line = _line(text, wrong)
        place = f"{origin}, line {line}" if line else origin
        end = "" if str(wrong).endswith("?") else "."
        raise BadInput(f"{place}: {wrong}{end}") from None


def write(draft: PlanDraft, head: str = "") -> str:
    """`head` is put on top as a comment."""
    table = drafts.record(draft)
    tickets: list[Mapping[str, Any]] = table.pop("tickets")
    parts = ["\n".join(f"# {line}".rstrip() for line in head.splitlines())] if head else []
    if table:
        parts.append("\n".join(_assignment(name, value) for name, value in table.items()))
    for ticket in tickets:
        parts.append("\n".join(["[[ticket]]", *(_assignment(name, value) for name, value in ticket.items())]))
    return "\n\n".join(parts) + "\n"


def _assignment(name: str, value: object) -> str:
    if name == "criteria" and isinstance(value, list):
        lines = [f"    {_inline(one)}," for one in value]
        return "\n".join([f"{name} = [", *lines, "]"])
    if isinstance(value, str) and "\n" in value:
        return f'{name} = """\n{_escaped(value)}"""'
    return f"{name} = {_inline(value)}"


def _inline(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case list():
            return f"[{', '.join(_inline(one) for one in value)}]"
        case Mapping():
            return f"{{{', '.join(f'{name} = {_inline(one)}' for name, one in value.items())}}}"
        case _:
            return _quoted(str(value))


def _quoted(text: str) -> str:
    """A JSON string is a TOML string, except for DEL."""
    return to_json(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _escaped(text: str) -> str:
    return "\n".join(_quoted(line)[1:-1] for line in text.split("\n"))


def _line(text: str, wrong: MalformedDraft) -> int | None:
    """The line of the named field in the ticket that is wrong, else the ticket's first line."""
    heads = list(_headers(text))
    lines = text.splitlines()
    if wrong.ticket is None:
        start, end = 0, heads[0] if heads else len(lines)
    elif wrong.ticket < len(heads):
        start, end = (*heads[wrong.ticket :], len(lines))[:2]
    else:
        return None
    for name in _fields(wrong):
        assigned = re.compile(rf"""(?:^|[{{,])\s*["']?{re.escape(name)}["']?\s*=""")
        for n in range(start, end):
            if assigned.search(lines[n]):
                return n + 1
    return None if wrong.ticket is None else start + 1


def _fields(wrong: MalformedDraft) -> list[str]:
    """The fields that the message names, without the key of its ticket."""
    _, _, after_ticket = str(wrong).partition(": ")
    return [wrong.unknown] if wrong.unknown else _NAMED.findall(after_ticket)


def _headers(text: str) -> Iterator[int]:
    """Indexes of the lines that start a ticket, outside of long strings."""
    inside = ""
    for n, line in enumerate(text.splitlines()):
        if not inside and _HEADER.match(line):
            yield n
        for quotes in ('"""', "'''"):
            if inside in ("", quotes) and line.count(quotes) % 2:
                inside = "" if inside else quotes
                break
