"""A check is a command that we run; a receipt is the proof that we ran it, on which tree, and what came out.

A receipt counts for exactly one command on exactly one tree. Where a green one exists nothing runs again; a red one is
never reused, because what failed may have been the machine.
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
    """What is really run, where `command` is only a name for it that may be told to anyone."""
    folder: str = ""
    """A folder outside the tree that it reads."""


HELD_OUT = "acceptance "
"""How the names of held-out acceptance begin; no check of a project can be called like that."""


class CheckResult(Enum):
    GREEN = "green"
    RED = "red"
    BROKEN = "broken"
    """It could not be run to its end (its runner was killed twice): nobody's fault, and no proof."""


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
    """The last lines of the output; the whole lies in `output`."""
    output: str
    """Where the whole output lies, relative to the data folder."""
    digest: str
    """SHA-256 of the whole output."""

    @property
    def held_out(self) -> bool:
        return self.name.startswith(HELD_OUT)

    @property
    def label(self) -> str:
        """What everybody may hear of it."""
        return self.name if self.held_out else self.command


def missing(checks: Iterable[Check], tree: str, receipts: Iterable[Receipt]) -> tuple[Check, ...]:
    """The checks that still have to run on this tree."""
    have = {receipt.command for receipt in receipts if receipt.tree == tree and receipt.verdict is CheckResult.GREEN}
    todo = {check.command: check for check in checks if check.command not in have}
    return tuple(todo.values())
