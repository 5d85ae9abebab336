"""What a day, a project and an epic may cost, all tickets together. A ticket's own budget is the gateway's business."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Budgets:
    """Dollars; 0: no limit."""

    day: float = 0.0
    """All projects together, on one day of UTC."""
    project: float = 0.0
    """Each project."""
    epic: float = 0.0
    """Each epic of a project."""

    def __bool__(self) -> bool:
        return bool(self.day or self.project or self.epic)


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What the tickets of one epic of a project spent on one day."""

    project: int
    epic: str
    day: str
    usd: float


@dataclass(frozen=True, kw_only=True)
class Empty:
    """A budget that is spent."""

    words: str
    daily: bool
    """Tomorrow there is another."""


@dataclass(frozen=True, kw_only=True)
class Purse:
    """What is left, by what was spent until now."""

    budgets: Budgets
    spent: tuple[Spent, ...]
    today: str

    def empty(self, project: int, epic: str) -> Empty | None:
        """Which budget of such a ticket is spent; None while none is."""
        scopes = (
            ("today's", "day_usd", self.budgets.day, [one for one in self.spent if one.day == self.today]),
            ("the project's", "project_usd", self.budgets.project, self._of(project)),
            (
                f"the budget of epic {epic},",
                "epic_usd",
                self.budgets.epic if epic else 0.0,
                [one for one in self._of(project) if one.epic == epic],
            ),
        )
        for whose, key, most, costs in scopes:
            total = sum(one.usd for one in costs)
            if most and total >= most:
                name = whose if whose.endswith(",") else f"{whose} budget"
                words = f"{name} of ${most:.2f} is spent (${total:.2f}): raise `budgets.{key}` in your settings"
                return Empty(words=words, daily=key == "day_usd")
        return None

    def _of(self, project: int) -> list[Spent]:
        return [one for one in self.spent if one.project == project]


def purse(budgets: Budgets, spent: Iterable[Spent], today: str) -> Purse:
    return Purse(budgets=budgets, spent=tuple(spent), today=today)
