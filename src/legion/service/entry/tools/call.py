"""One call of a tool: its caller, its arguments, and the validation of the arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from legion.domain.agents.tools import Parameter, Tool
from legion.domain.errors import BadInput
from legion.jobs.board import Board
from legion.service.operations import Caller, Service
from legion.service.shared.commit_signal import CommitSignal

Data = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class ToolRequest:
    context: Board
    news: CommitSignal
    service: Service
    """As the caller may use it."""
    caller: Caller
    arguments: Mapping[str, Any]
    request: str
    cwd: str
    """The project of a person; an agent has its own."""

    def text(self, name: str) -> str:
        return str(self.arguments.get(name) or "")

    def texts(self, name: str) -> list[str]:
        return [str(item) for item in self.arguments.get(name) or []]

    def number(self, name: str) -> int | None:
        found = self.arguments.get(name)
        return None if found is None else int(found)

    def amount(self, name: str) -> float | None:
        found = self.arguments.get(name)
        return None if found is None else float(found)

    def flag(self, name: str) -> bool:
        return self.arguments.get(name) is True


class NotYet(Exception):
    """There is no answer yet; the caller sends the same call again."""


_LONGEST_TEXT = 1_000_000
_KINDS: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "strings": (list,),
    "integers": (list,),
}
_BIGGEST = 2**53


def checked(tool: Tool, takes: Mapping[str, Parameter], arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments, if they are what the tool takes. Raises BadInput that tells the model what to send instead."""
    given = {name: value for name, value in arguments.items() if value is not None}
    unknown = [name for name in given if name not in takes]
    if unknown:
        listed = ", ".join(takes) or "nothing"
        raise BadInput(f"{tool.value} has no parameter {unknown[0][:40]!r}: it takes {listed}.")
    for name, parameter in takes.items():
        if name in given:
            _check(tool, name, parameter, given[name])
        elif parameter.needed:
            raise BadInput(f"{tool.value} needs {name!r}: call it again with it.")
    return given


def _check(tool: Tool, name: str, parameter: Parameter, value: object) -> None:
    items = value if isinstance(value, list) else [value]
    single = parameter.kind.removesuffix("s") if parameter.kind in ("strings", "integers") else parameter.kind
    fits = isinstance(value, _KINDS[parameter.kind]) and all(_fits(item, single) for item in items)
    if not fits:
        raise BadInput(f"{name!r} of {tool.value} must be {_describe(parameter)}: call it again with that.")
    if parameter.needed and isinstance(value, str) and not value.strip():
        raise BadInput(f"{name!r} of {tool.value} is empty: say it.")
    if parameter.one_of and value not in parameter.one_of:
        raise BadInput(f"{name!r} of {tool.value} must be one of {', '.join(parameter.one_of)}.")


def _fits(item: object, kind: str) -> bool:
    if isinstance(item, bool):
        return kind == "boolean"
    if isinstance(item, str):
        return kind == "string" and len(item) <= _LONGEST_TEXT and "\0" not in item and _is_unicode(item)
    return isinstance(item, _KINDS[kind]) and isinstance(item, int | float) and abs(item) <= _BIGGEST


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _describe(parameter: Parameter) -> str:
    return {
        "string": "text",
        "integer": "a whole number",
        "number": "a number",
        "boolean": "true or false",
        "strings": "a list of texts",
        "integers": "a list of whole numbers",
    }[parameter.kind]
