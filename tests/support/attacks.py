"""Attack cases: tests that play an attacker, and the table that `make attack` prints of them.

    @attack(Attacker.AGENT, Door.PATHS)
    def test_a_link_in_the_worktree_opens_nothing(...): ...

Every parameter of such a test is a case of its own. A case that fails got through.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

MARKER = "attack"
_PROPERTY = "attack"


class Attacker(enum.Enum):
    AGENT = "agent"
    REPOSITORY = "repository"
    PAGE = "page of another site"
    DEV_SERVER = "dev server"
    LOCAL_USER = "local user"
    MACHINE = "machine"
    NETWORK = "stranger in the network"
    PROGRAM = "agent program"


class Door(enum.Enum):
    """What an attack tries to break."""

    PATHS = "no path is built from a request"
    TREES = "what an agent can write is read in a sandbox"
    CHECKS = "checks stand on landed commits"
    RIGHTS = "who may call what is an allow-list"
    ORIGIN = "a browser's right is bound to one origin"
    TEXT = "text from agents is data"
    KEYS = "no key acts while text is being written"
    NAMES = "an act hits what it names"
    MONEY = "money and counts are right"
    BOUNDS = "everything is bounded"
    SANDBOX = "an agent stays in its sandbox"
    SECRETS = "keys stay out of reach"


def attack(by: Attacker, door: Door) -> Callable[[Any], Any]:
    """Mark a test, or all tests of a class, as an attack."""
    return pytest.mark.attack(by, door)


def record(item: pytest.Item) -> None:
    """Let the item's reports carry what it attacks, so that the process that prints the table knows it."""
    mark = item.get_closest_marker(MARKER)
    if mark is not None:
        by, door = mark.args
        item.user_properties.append((_PROPERTY, f"{door.value}\t{by.value}"))


def table(reports: dict[str, list[Any]], *, whole: bool = True) -> list[str]:
    """The lines of the table: what was tried, what held, what got through; none without attacks."""
    held, through, skipped = (_counts(reports.get(kind, [])) for kind in ("passed", "failed", "skipped"))
    through += _counts(reports.get("error", []))
    rows = sorted({*held, *through, *skipped})
    if not rows:
        return []
    width = max(len(door) for door, _ in rows)
    lines = [f"{'door':{width}}  {'attacker':24}  tried  held  through  not run"]
    for row in rows:
        tried = held[row] + through[row]
        lines.append(f"{row[0]:{width}}  {row[1]:24}  {tried:5}  {held[row]:4}  {through[row]:7}  {skipped[row]:7}")
    lines.append(f"{held.total() + through.total()} cases tried, {held.total()} held, {through.total()} got through.")
    return lines if whole else [*lines, "The run broke off: not every case was tried."]


def _counts(reports: list[Any]) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for report in reports:
        for name, value in getattr(report, "user_properties", ()):
            if name == _PROPERTY:
                door, by = value.split("\t")
                found[door, by] += 1
    return found
