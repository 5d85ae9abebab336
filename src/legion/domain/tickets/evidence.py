"""Evidence: which criterion of a ticket is proven by which command, and which is only claimed.

Criteria are the lines of a ticket's `criteria`. A proof names the one it is for: `part of the line :: command`,
or its number; `[test]` in place of the command stands for the project's check of that name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from legion.domain.checks import CheckResult, Receipt
from legion.domain.errors import BadInput

_BULLET = re.compile(r"^(?:[-*•]|\d+[.)])\s+")
_CHECK = re.compile(r"\[([A-Za-z0-9][A-Za-z0-9._-]*)\]")
SEPARATOR = " :: "


class Backing(Enum):
    PROVEN = "proven"
    """Its command passed on exactly the files that landed, and failed without the change."""
    GREEN = "green"
    """Its command passed; the change has not landed, or the command was not seen to fail without it."""
    RED = "red"
    """Its command failed, or could not be run, in its last run."""
    OPEN = "open"
    """Bound to a command that has not run yet."""
    READ = "read"
    """No command is bound to it; an independent reviewer read the change and found it met. No proof."""
    CLAIMED = "claimed"
    """No command is bound to it: only the agent claims it."""


@dataclass(frozen=True, kw_only=True)
class Bound:
    """A criterion, by its index among the lines, and what proves it: a command, or a check's name in brackets."""

    criterion: int
    by: str


@dataclass(frozen=True, kw_only=True)
class Evidence:
    words: str
    backing: Backing
    by: str = ""
    """The command; empty where there is none."""
    receipt: Receipt | None = None


def criteria_of(text: str) -> tuple[str, ...]:
    """One per line, without bullets and numbers."""
    lines = (_BULLET.sub("", line.strip()).strip() for line in text.splitlines())
    return tuple(line for line in lines if line)


def unproven(criteria: str, bound: Sequence[Bound]) -> int:
    """How many criteria no command proves."""
    mine = {one.criterion for one in bound}
    return sum(place not in mine for place, _ in enumerate(criteria_of(criteria)))


def bind(criteria: str, proofs: Sequence[str]) -> tuple[tuple[str, ...], tuple[Bound, ...]]:
    """The commands to run, and which criterion each is for. Raises BadInput where a criterion is not found."""
    lines = criteria_of(criteria)
    commands: list[str] = []
    bound: list[Bound] = []
    for proof in proofs:
        words, separator, command = proof.partition(SEPARATOR)
        if not separator:
            commands.append(proof)
            continue
        if not command.strip():
            raise BadInput(f"The proof {proof!r} has no command behind `::`: write `CRITERION :: COMMAND`.")
        bound.append(Bound(criterion=_line(words.strip(), lines, proof), by=command.strip()))
        if check_named(command.strip()) is None:
            commands.append(command.strip())
    return tuple(dict.fromkeys(commands)), tuple(bound)


def check_named(by: str) -> str | None:
    """The name of the project's check that a proof refers to, if it does."""
    found = _CHECK.fullmatch(by)
    return found[1] if found else None


def weigh(
    criteria: str,
    bound: Sequence[Bound],
    checks: Mapping[str, str],
    receipts: Sequence[Receipt],
    landed_on: Sequence[Receipt] | None,
    read: Mapping[int, str] | None = None,
    red_without: Collection[str] | None = None,
) -> tuple[Evidence, ...]:
    """The evidence for each criterion; several commands for one give several. `checks`: commands by name; `receipts`:
    those of the latest change, oldest first; `landed_on`: those that let it land, None where it has not; `read`: by
    criterion, the place where a reviewer found it met; `red_without`: commands that failed without the change, None
    where there is none to leave out.
    """
    found: list[Evidence] = []
    for place, words in enumerate(criteria_of(criteria)):
        mine = [one.by for one in bound if one.criterion == place]
        found += [_stands(words, _command(by, checks), receipts, landed_on, red_without) for by in mine]
        if not mine and read and place in read:
            found.append(Evidence(words=words, backing=Backing.READ, by=read[place]))
        elif not mine:
            found.append(Evidence(words=words, backing=Backing.CLAIMED))
    return tuple(found)


def _command(by: str, checks: Mapping[str, str]) -> str:
    name = check_named(by)
    return by if name is None else checks.get(name, by)


def _stands(
    words: str,
    command: str,
    receipts: Sequence[Receipt],
    landed_on: Sequence[Receipt] | None,
    red_without: Collection[str] | None,
) -> Evidence:
    if landed_on is not None:
        proof = [one for one in landed_on if one.command == command and one.verdict is CheckResult.GREEN]
        if proof:
            backing = Backing.PROVEN if red_without is None or command in red_without else Backing.GREEN
            return Evidence(words=words, backing=backing, by=command, receipt=proof[-1])
        return Evidence(words=words, backing=Backing.CLAIMED, by=command)
    ran = [one for one in receipts if one.command == command]
    if not ran:
        return Evidence(words=words, backing=Backing.OPEN, by=command)
    backing = Backing.GREEN if ran[-1].verdict is CheckResult.GREEN else Backing.RED
    return Evidence(words=words, backing=backing, by=command, receipt=ran[-1])


def _line(wanted: str, lines: Sequence[str], proof: str) -> int:
    """The one line that is meant: by its number, or by text that occurs in no other."""
    if wanted.isascii() and wanted.isdigit() and 1 <= int(wanted) <= len(lines):
        return int(wanted) - 1
    folded = [" ".join(line.casefold().split()) for line in lines]
    sought = " ".join(wanted.casefold().split())
    exact = [place for place, line in enumerate(folded) if line == sought]
    found = exact or [place for place, line in enumerate(folded) if sought and sought in line]
    if len(found) == 1:
        return found[0]
    many = "more than one line" if found else "no line"
    raise BadInput(
        f"The proof {proof[:80]!r} is for {wanted[:40]!r}, which stands in {many} of the criteria: "
        "use words of exactly one, or its number."
    )
