"""Checks and receipts: a check is a command that Legion runs, a receipt the proof that it ran on one tree.

A receipt counts for exactly one command on exactly one tree. A green receipt is reused; a red one never is, because the
machine may have caused the failure. After a red one on the same tree, one green is not enough: the next run decides.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
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
_COMPARED = {"=": True, "==": True, "-eq": True, "!=": False, "-ne": False}
"""What `test` says of two equal words."""


def never_passes(command: str) -> bool:
    """Whether no file at all can make it pass: `false`, `exit 1`, `test 1 = 2`, and what ends with such."""
    try:
        words = list(shlex.shlex(command, posix=True, punctuation_chars=";&|<>()"))
    except ValueError:
        return False
    if "\n" in command or any(word in ("|", "&", "(", ")") or set(word) & set("$`*?{") for word in words):
        return False
    passes: bool | None = None
    operator, at = ";", list[str]()
    for word in (*words, ";"):
        if word not in (";", "&&", "||"):
            at.append(word)
            continue
        ends = _ends(at)
        decides = operator == "||"
        if operator == ";" or ends is decides or passes is (not decides):
            passes = ends
        if at[:1] == ["exit"] and operator == ";":
            break
        operator, at = word, []
    return passes is False


def _ends(words: list[str]) -> bool | None:
    """Whether a simple command passes, where no file decides that."""
    match words:
        case ["!", *rest]:
            inner = _ends(rest)
            return None if inner is None else not inner
        case ["exit", number] if number.isdigit():
            return int(number) % 256 == 0
        case ["test", one, sign, other] | ["[", one, sign, other, "]"] if sign in _COMPARED:
            return (one == other) is _COMPARED[sign]
        case [name, *_]:
            return _CONSTANTS.get(name)
    return None


BLOCKS = 2
"""The exit code of a hook that sends work back, as in Claude Code."""


class HookKind(Enum):
    """The value is the name of the setting; `event` the name that the hook reads."""

    TASK_CREATED = "task_created"
    """Before a ticket is created. Sent back: it is not."""
    TASK_COMPLETED = "task_completed"
    """An agent's change has passed its proofs. Sent back: its agent gets the text and tries again."""
    TEAMMATE_IDLE = "teammate_idle"
    """A standing agent has ended its turn. Sent back: it continues with the text."""
    BEFORE_LAND = "before_land"
    """A change has passed everything and would land now. Sent back: its agent gets the text and tries again."""

    @property
    def event(self) -> str:
        return "".join(part.capitalize() for part in self.value.split("_"))


@dataclass(frozen=True, kw_only=True)
class HookResult:
    blocks: bool = False
    text: str = ""
    """What it printed on stderr: the reason for the agent or the person."""
    trouble: str = ""
    """Why it decided nothing, although it ran: a crash or the time limit. It blocks nothing then."""


def judge(code: int, *, stderr: str, timed_out: bool, seconds: float) -> HookResult:
    if timed_out:
        return HookResult(trouble=f"it took longer than {seconds:g} s")
    if code == BLOCKS:
        return HookResult(blocks=True, text=stderr.strip() or "The hook gave no reason.")
    return HookResult(trouble="" if code == 0 else f"it ended with {code}: {stderr.strip()[-300:]}")
