"""Checks and receipts: a check is a command that Legion runs, a receipt the proof that it ran on one tree.

A receipt counts for exactly one command on exactly one tree. A green receipt is reused; a red one never is, because the
machine may have caused the failure.
"""

from __future__ import annotations

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

    @property
    def held_out(self) -> bool:
        return self.name.startswith(HELD_OUT)

    @property
    def label(self) -> str:
        """The name that may be shown to everyone."""
        return self.name if self.held_out else self.command


def missing(checks: Iterable[Check], tree: str, receipts: Iterable[Receipt]) -> tuple[Check, ...]:
    """The checks that must still run on this tree."""
    have = {receipt.command for receipt in receipts if receipt.tree == tree and receipt.verdict is CheckResult.GREEN}
    todo = {check.command: check for check in checks if check.command not in have}
    return tuple(todo.values())
