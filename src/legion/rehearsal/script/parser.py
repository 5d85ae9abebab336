"""Parses scripts from TOML files; errors name the step and the field."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from legion.rehearsal.script.script import (
    BadScript,
    Drop,
    Script,
    ScriptedCall,
    ScriptedLimit,
    ScriptedTrouble,
    ScriptedUsage,
    Step,
    Window,
)

NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")

_T = TypeVar("_T")
STEP_KEYS = {
    "attempt", "call", "calls", "delay", "drop", "expect", "headers", "limit", "message", "say", "slow", "status",
    "stop", "think", "times", "usage",
}  # fmt: skip
_STOPS = ("end_turn", "tool_use", "max_tokens", "stop_sequence", "refusal", "pause_turn")
_OWN_NAMES = ("cwd", "ticket", "title", "attempt")


def read(path: Path) -> Script:
    """The script in this file, named after it."""
    try:
        return _parsed(path, path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadScript(f"{path.name} is not TOML ({error}): fix the file.") from error


@functools.lru_cache(maxsize=64)
def _parsed(path: Path, text: str) -> Script:
    """Every request reads its script, and few scripts change in between."""
    return _ScriptParser(path.name).script(path.stem, tomllib.loads(text))


def read_all(folder: Path) -> dict[str, Script]:
    """All scripts of a folder, so that a mistake shows before the start."""
    return {path.stem: read(path) for path in sorted(folder.glob("*.toml"))}


class _ScriptParser:
    """Turns tables into records; `place` names the step in every error."""

    def __init__(self, place: str) -> None:
        self.place = place

    def script(self, name: str, document: Mapping[str, Any]) -> Script:
        if NAME.fullmatch(name) is None:
            raise self.bad("a script's name may have only small letters, digits, - and _")
        self.only(document, {"capture", "fill", "step", "ticket"})
        fills = self.get(document, "fill", list, list(_OWN_NAMES))
        if not all(name in _OWN_NAMES for name in fills):
            raise self.bad(f"fill may name {', '.join(_OWN_NAMES)}")
        steps = self.get(document, "step", list, [])
        if not steps:
            raise self.bad("a script needs at least one [[step]]")
        captures = self.get(document, "capture", dict, {})
        for key, pattern in captures.items():
            if key in _OWN_NAMES:
                raise self.bad(f"the name {key} in [capture] is reserved; choose another")
            if not isinstance(pattern, str) or self.pattern(pattern).groups != 1:
                raise self.bad(f"{key} in [capture] must be a regular expression with one group")
        read = tuple(_ScriptParser(f"{self.place}, step {number}").step(step) for number, step in enumerate(steps, 1))
        return Script(name=name, steps=read, captures=captures, fills=tuple(fills))

    def step(self, table: object) -> Step:
        if not isinstance(table, dict):
            raise self.bad("a step is a table, written [[step]]")
        self.only(table, STEP_KEYS)
        calls = self.calls(table)
        say, think = self.get(table, "say", str, ""), self.get(table, "think", str, "")
        trouble = self.trouble(table)
        answers = bool(say or think or calls)
        silent = trouble is not None and trouble.times is None and trouble.drop is not Drop.MID
        if silent and answers:
            raise self.bad("an error without `times` never lets the answer come: add `times` or remove the answer")
        if not silent and not answers:
            raise self.bad("the step is empty: give it say, think or call")
        stop = self.get(table, "stop", str, "")
        if stop and stop not in _STOPS:
            raise self.bad(f"stop must be one of {', '.join(_STOPS)}")
        expect = self.get(table, "expect", str, "")
        self.pattern(expect)
        headers = self.get(table, "headers", dict, {})
        return Step(
            think=think,
            say=say,
            calls=calls,
            stop=stop,
            expect=expect,
            trouble=trouble,
            usage=self.usage(self.get(table, "usage", dict, {})),
            limit=self.limit(table),
            headers={str(name).lower(): str(value) for name, value in headers.items()},
            delay=self.seconds(table, "delay"),
            slow=self.seconds(table, "slow"),
            attempt=self.integer(table, "attempt", 1, 1),
        )

    def calls(self, table: Mapping[str, Any]) -> tuple[ScriptedCall, ...]:
        if "call" in table and "calls" in table:
            raise self.bad("use call or calls, not both")
        single = [self.get(table, "call", dict, {})] if "call" in table else []
        return tuple(self.call(entry) for entry in [*single, *self.get(table, "calls", list, [])])

    def call(self, entry: object) -> ScriptedCall:
        if not isinstance(entry, dict) or not isinstance(entry.get("tool"), str):
            raise self.bad('a call needs the name of its tool, as in {tool = "Bash", input = {command = "ls"}}')
        self.only(entry, {"tool", "input"})
        return ScriptedCall(tool=entry["tool"], input=self.get(entry, "input", dict, {}))

    def trouble(self, table: Mapping[str, Any]) -> ScriptedTrouble | None:
        times = self.integer(table, "times", 0, 1) or None
        if "status" not in table and "drop" not in table:
            if times is not None or "message" in table:
                raise self.bad("times and message belong to a status or a drop")
            return None
        if "status" in table and "drop" in table:
            raise self.bad("use status or drop, not both")
        message = self.get(table, "message", str, ScriptedTrouble.message)
        if "drop" in table:
            return ScriptedTrouble(drop=self.member(Drop, table["drop"], "drop"), message=message, times=times)
        status = self.integer(table, "status", 0, 400)
        if status > 599:
            raise self.bad("status must be an HTTP error, from 400 to 599")
        return ScriptedTrouble(status=status, message=message, times=times)

    def usage(self, table: Mapping[str, Any]) -> ScriptedUsage:
        self.only(table, {"input", "output", "cache_read", "cache_write"})
        return ScriptedUsage(
            input=self.integer(table, "input", 0, 0) if "input" in table else None,
            output=self.integer(table, "output", 0, 0) if "output" in table else None,
            cache_read=self.integer(table, "cache_read", 0, 0),
            cache_write=self.integer(table, "cache_write", 0, 0),
        )

    def limit(self, table: Mapping[str, Any]) -> ScriptedLimit | None:
        if "limit" not in table:
            return None
        limit = self.get(table, "limit", dict, {})
        self.only(limit, {"resets_in", "utilization", "window"})
        return ScriptedLimit(
            resets_in=self.seconds(limit, "resets_in"),
            utilization=self.number(limit, "utilization", ScriptedLimit.utilization),
            window=self.member(Window, limit.get("window", ScriptedLimit.window.value), "window"),
        )

    def get(self, table: Mapping[str, Any], key: str, kind: type[_T], default: _T) -> _T:
        value = table.get(key, default)
        if not isinstance(value, kind):
            raise self.bad(f"{key} must be a {_KINDS[kind]}")
        return value

    def integer(self, table: Mapping[str, Any], key: str, default: int, least: int) -> int:
        value = table.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or (key in table and value < least):
            raise self.bad(f"{key} must be a whole number from {least} on")
        return value

    def number(self, table: Mapping[str, Any], key: str, default: float) -> float:
        value = table.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise self.bad(f"{key} must be a number from 0 on")
        return float(value)

    def seconds(self, table: Mapping[str, Any], key: str) -> float:
        return self.number(table, key, 0.0)

    def member(self, kind: Callable[[object], _T], value: object, key: str) -> _T:
        try:
            return kind(value)
        except ValueError as unknown:
            raise self.bad(f"{key}: {unknown}") from unknown

    def pattern(self, text: str) -> re.Pattern[str]:
        try:
            return re.compile(text)
        except re.error as error:
            raise self.bad(f"{text!r} is not a regular expression ({error})") from error

    def only(self, table: Mapping[str, Any], allowed: set[str]) -> None:
        if unknown := sorted(set(table) - allowed):
            raise self.bad(f"{', '.join(unknown)} is not known here; use {', '.join(sorted(allowed))}")

    def bad(self, sentence: str) -> BadScript:
        return BadScript(f"{self.place}: {sentence}.")


_KINDS: Mapping[type, str] = {str: "text", list: "list", dict: "table"}
