"""Decides whether a program may use a tool that it asks for, by the person's settings and the sandbox. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from legion.drivers.turns.permission_rules import rule_for

_RULE = re.compile(r"([A-Za-z_]+)(?:\((.*)\))?", re.DOTALL)
_COMPOUND = set(";&|`$<>(){}\n\r")
"""A command with one of these may hold another command, which no pattern was meant for."""
_READING = frozenset({"read", "search", "think"})
_WRITING = frozenset({"edit", "delete", "move"})
_TOOLS = {
    "execute": "Bash",
    "edit": "Edit",
    "delete": "Edit",
    "move": "Edit",
    "read": "Read",
    "fetch": "WebFetch",
}
"""The settings name tools as Claude Code does."""
_SAME = {"Write": "Edit", "MultiEdit": "Edit", "NotebookEdit": "Edit", "WebSearch": "WebFetch"}


class PermissionVerdict(Enum):
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@dataclass(frozen=True, kw_only=True)
class PermissionQuery:
    """One use of a tool, as the program describes it."""

    kind: str
    """`read`, `edit`, `delete`, `move`, `search`, `execute`, `think`, `fetch`, `switch_mode` or `other`."""
    command: str = ""
    paths: tuple[str, ...] = ()
    url: str = ""

    @staticmethod
    def of(kind: str, input: object, locations: Sequence[str]) -> PermissionQuery:
        facts = input if isinstance(input, Mapping) else {}
        command = next((facts[name] for name in ("command", "cmd") if isinstance(facts.get(name), str)), "")
        names = ("file_path", "path", "filePath", "filepath", "fileName", "absolute_path")
        named = [facts[name] for name in names if isinstance(facts.get(name), str)]
        url = facts.get("url")
        paths = tuple(dict.fromkeys((*locations, *named)))
        return PermissionQuery(kind=kind, command=command, paths=paths, url=url if isinstance(url, str) else "")

    @property
    def rule(self) -> str:
        """The narrowest rule of the settings that allows exactly this; empty where there is none."""
        tool = _TOOLS.get(self.kind, "")
        input = {"command": self.command, "file_path": self.paths[0] if len(self.paths) == 1 else "", "url": self.url}
        return rule_for(tool, input) if tool else ""


@dataclass(frozen=True, kw_only=True)
class Policy:
    mode: str
    """The permission mode of the settings."""
    allowed: tuple[str, ...]
    """The rules of the settings, such as `Bash(make *)`."""
    sandboxed: bool
    asks: bool
    tree: Path


def decide(request: PermissionQuery, policy: Policy) -> PermissionVerdict:
    if policy.mode == "bypassPermissions" or request.kind == "think":
        return PermissionVerdict.ALLOW
    if any(_matches(rule, request) for rule in policy.allowed):
        return PermissionVerdict.ALLOW
    if policy.mode != "dontAsk":
        inside = all(_is_inside(path, policy.tree) for path in request.paths)
        if request.kind in _READING and inside:
            return PermissionVerdict.ALLOW
        if policy.mode != "default" and _is_harmless(request, policy, inside=inside):
            return PermissionVerdict.ALLOW
    return PermissionVerdict.ASK if policy.asks and policy.mode != "dontAsk" else PermissionVerdict.DENY


def _is_harmless(request: PermissionQuery, policy: Policy, *, inside: bool) -> bool:
    """In a sandbox nothing outside can be harmed; without one only the worktree may change."""
    if policy.sandboxed:
        return request.kind != "switch_mode"
    return request.kind in _WRITING and inside and bool(request.paths)


def _matches(rule: str, request: PermissionQuery) -> bool:
    found = _RULE.fullmatch(rule.strip())
    tool = _TOOLS.get(request.kind)
    if found is None or tool is None or _SAME.get(found[1], found[1]) != tool:
        return False
    pattern = found[2]
    if pattern is None or pattern in ("", "*"):
        return True
    if tool == "Bash":
        return _matches_command(pattern, request.command)
    if tool == "WebFetch":
        return rule == request.rule
    paths = [PurePosixPath(path) for path in request.paths]
    wanted = pattern.removeprefix("/") if pattern.startswith("//") else pattern
    return bool(paths) and all(".." not in path.parts and fnmatchcase(str(path), wanted) for path in paths)


def _matches_command(pattern: str, command: str) -> bool:
    if command == pattern:
        return True
    start = pattern.removesuffix("*").removesuffix(":").rstrip()
    if not pattern.endswith("*") or set(command) & _COMPOUND:
        return False
    return command == start or command.startswith(f"{start} ")


def _is_inside(path: str, tree: Path) -> bool:
    """By its text: the sandbox and the driver's own requests hold what links could change."""
    pure = PurePosixPath(path)
    if ".." in pure.parts:
        return False
    return not pure.is_absolute() or pure.is_relative_to(PurePosixPath(tree))
