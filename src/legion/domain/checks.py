"""Checks and receipts: a check is a command that Legion runs, a receipt the proof that it ran on one tree.

A receipt counts for exactly one command on exactly one tree. A green receipt is reused; a red one never is, because the
machine may have caused the failure. After a red one on the same tree, one green is not enough: the next run decides.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, kw_only=True)
class Check:
    name: str
    """`test` for [checks.test]; `proof 1 of ticket 7` for a ticket's own."""
    command: str
    timeout: float = 600.0
    runs: str = ""
    """The command that really runs, where `command` is only a public name for it."""
    folder: str = ""
    """A folder outside the tree that the check reads."""
    offline: bool = False
    """It has no network, whatever the settings of the sandbox allow."""
    on: tuple[str, ...] = ()
    """The labels that its place must have; empty: it runs on the head."""
    toolchain: str = ""
    """The fingerprint that its place must have; empty: that of the head."""
    paths: tuple[str, ...] = ()
    """Patterns of the files that it tests; empty: any file may matter to it."""


HELD_OUT = "acceptance "
"""The prefix of the names of held-out acceptance checks; no check of a project may start with it."""


class CheckResult(Enum):
    GREEN = "green"
    RED = "red"
    BROKEN = "broken"
    """The check did not run to its end (its runner was killed twice): neither a fault nor a proof."""
    SETUP = "setup"
    """[setup] failed, so the check was not started."""


@dataclass(frozen=True, kw_only=True)
class Receipt:
    id: int
    project: int
    ticket: int | None
    """None for checks of a batch or of the target itself."""
    name: str
    command: str
    commit: str
    tree: str
    verdict: CheckResult
    exit_code: int | None
    duration: float
    made_at: float
    tail: str
    """The last lines of the output; `output` has all of it."""
    output: str
    """The path of the full output, relative to the data folder."""
    digest: str
    """SHA-256 of the full output."""
    machine: str = ""
    """Where it ran; empty: on the head."""
    trusted: str = ""
    """Who trusts the check although it was not shown to go red when the code is broken; empty where it was."""

    @property
    def held_out(self) -> bool:
        return self.name.startswith(HELD_OUT)

    @property
    def label(self) -> str:
        """The name that may be shown to everyone."""
        return self.name if self.held_out else self.command


def missing(checks: Iterable[Check], tree: str, receipts: Iterable[Receipt]) -> tuple[Check, ...]:
    """The checks that must still run on this tree."""
    on_tree: dict[str, list[Receipt]] = {}
    for receipt in receipts:
        if receipt.tree == tree:
            on_tree.setdefault(receipt.command, []).append(receipt)
    todo = {check.command: check for check in checks if not is_proven(on_tree.get(check.command, ()))}
    return tuple(todo.values())


def is_proven(receipts: Iterable[Receipt]) -> bool:
    """Whether these receipts of one command on one tree, oldest first, end green: twice, where one of them is red."""
    ran = [one.verdict for one in receipts if one.verdict in (CheckResult.GREEN, CheckResult.RED)]
    needed = 2 if CheckResult.RED in ran else 1
    return len(ran) >= needed and all(verdict is CheckResult.GREEN for verdict in ran[-needed:])


def failed_commands(red: Iterable[Receipt]) -> str:
    """For people: a check that [setup] did not let start has not failed."""
    failed = tuple(red)
    if any(one.verdict is CheckResult.SETUP for one in failed):
        return "[setup]"
    return ", ".join(f"`{one.label}`" for one in failed)


def what_failed(red: Iterable[Receipt], where: str = "") -> str:
    """`where` follows the verb: ` on the landed code`."""
    named = failed_commands(red)
    return f"{named} failed{where}" if named == "[setup]" else f"checks failed{where}: {named}"


_SYNTAX = re.compile(r"^sh: .*syntax error", re.IGNORECASE | re.MULTILINE)
_NO_PROGRAM = re.compile(r"^\S*sh: (?:(?:[^\s:]+ )?\d+: [^:/\s]+: |(?!\d+:)[^:/\s]+: .*not found)", re.MULTILINE)
"""What shells say of a program without a folder in its name; with the number of a line, in any language."""


def cannot_run(exit_code: int | None, said: str) -> bool:
    """Whether a command is no command here, by how its shell ended: no change of files makes it one."""
    return bool(exit_code and _SYNTAX.search(said)) or (exit_code == 127 and bool(_NO_PROGRAM.search(said)))


_CONSTANTS = {"true": True, ":": True, "false": False}
_COMPARED: dict[str, Callable[[str, str], bool]] = {
    "=": str.__eq__,
    "==": str.__eq__,
    "!=": str.__ne__,
    "-eq": lambda one, other: int(one) == int(other),
    "-ne": lambda one, other: int(one) != int(other),
    "-lt": lambda one, other: int(one) < int(other),
    "-gt": lambda one, other: int(one) > int(other),
    "-le": lambda one, other: int(one) <= int(other),
    "-ge": lambda one, other: int(one) >= int(other),
}
_SEPARATORS = (";", "&&", "||")


def never_passes(command: str) -> bool:
    """Whether no file at all can make it pass: `false`, `exit 1`, `test 1 = 2`, and what ends with such."""
    if "\n" in command:
        return False
    try:
        words = list(shlex.shlex(command, posix=True, punctuation_chars=";&|<>()"))
    except ValueError:
        return False
    if not words or any(word in ("|", "&", "(", ")") or set(word) & set("$`*?[{") - {"["} for word in words):
        return False
    passes, at, operator = _Ending.OPEN, [], ";"
    for word in (*words, ";"):
        if word not in _SEPARATORS:
            at.append(word)
            continue
        ends, does_exit = _ends(at)
        passes = _joined(passes, operator, ends)
        if does_exit and operator == ";":
            break
        at, operator = [], word
    return passes is _Ending.FAILS


class _Ending(Enum):
    PASSES = "passes"
    FAILS = "fails"
    OPEN = "open"


def _joined(first: _Ending, operator: str, then: _Ending) -> _Ending:
    if operator == ";":
        return then
    decides = _Ending.FAILS if operator == "&&" else _Ending.PASSES
    if decides in (first, then):
        return decides
    return then if first is not _Ending.OPEN else _Ending.OPEN


def _ends(words: list[str]) -> tuple[_Ending, bool]:
    """What is known of a simple command, and whether the shell ends with it."""
    if not words:
        return _Ending.OPEN, False
    if words[0] == "!":
        inner, does_exit = _ends(words[1:])
        turned = {_Ending.PASSES: _Ending.FAILS, _Ending.FAILS: _Ending.PASSES}
        return turned.get(inner, _Ending.OPEN), does_exit
    name, *rest = words
    if name == "exit" and len(rest) == 1 and rest[0].isdigit():
        return _Ending.FAILS if int(rest[0]) % 256 else _Ending.PASSES, True
    known = _CONSTANTS.get(name)
    if name in ("test", "["):
        rest = rest[:-1] if name == "[" else rest
        with suppress(ValueError):
            known = _COMPARED[rest[1]](rest[0], rest[2]) if len(rest) == 3 and rest[1] in _COMPARED else None
    return (_Ending.OPEN if known is None else _Ending.PASSES if known else _Ending.FAILS), False
