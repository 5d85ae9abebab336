"""Budgets of a day, a project and an epic, over all tickets. The gateway enforces a ticket's own budget."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Budgets:
    """Dollars; 0: no limit."""

    day: float = 0.0
    """All projects together, on one day of UTC."""
    project: float = 0.0
    """Each project."""
    epic: float = 0.0
    """Each epic of a project."""
    epics: Mapping[tuple[int, str], float] = field(default_factory=dict)
    """Epics with a budget of their own, by project and name."""

    def __bool__(self) -> bool:
        return bool(self.day or self.project or self.epic or self.epics)


@dataclass(frozen=True, kw_only=True)
class EpicSpending:
    """What the tickets of one epic of a project spent on one day."""

    project: int
    epic: str
    day: str
    usd: float


@dataclass(frozen=True, kw_only=True)
class SpentBudget:
    """A budget that is spent."""

    words: str
    name: str
    """Its name, for people."""
    daily: bool
    """There is a new one tomorrow."""
    scope: str
    """Its id, for programs: what a person adds to the settings is added to it."""
    project: int
    """The project whose ticket or agent waits for it."""
    usd: float
    """As in the settings; a person may add as much again."""
    most: float
    """With what a person added."""
    total: float

    @property
    def key(self) -> str:
        """The key of the question about it; it changes with the amount."""
        return f"{KEY}{self.scope}:{self.most:.6f}"

    @property
    def question(self) -> str:
        return (
            f"{self.name[:1].upper()}{self.name[1:]} of ${self.most:g} is spent (${self.total:.2f}), and work waits "
            f"for it. Shall it get ${self.usd:g} more?"
        )


KEY = "budget:"


def scope_of(key: str) -> str:
    """The budget that the question with this key is about."""
    return key.removeprefix(KEY).rpartition(":")[0]


@dataclass(frozen=True, kw_only=True)
class BudgetBalance:
    """The budgets and what was spent so far."""

    budgets: Budgets
    spent: tuple[EpicSpending, ...]
    today: str
    extra: Mapping[str, float] = field(default_factory=dict)
    """By scope: what a person added to the settings."""

    def empty(self, project: int, epic: str) -> SpentBudget | None:
        """The first budget of such a ticket that is spent; None while none is."""
        return next(iter(self.empties(project, epic)), None)

    def empties(self, project: int, epic: str) -> tuple[SpentBudget, ...]:
        today = [one for one in self.spent if one.day == self.today]
        mine = [one for one in self.spent if one.project == project]
        scopes = (
            ("today's budget", "day_usd", self.budgets.day, f"day:{self.today}", today),
            ("the project's budget", "project_usd", self.budgets.project, f"project:{project}", mine),
            (
                f"the budget of epic {epic}",
                "epic_usd",
                self.budgets.epics.get((project, epic), self.budgets.epic) if epic else 0.0,
                f"epic:{project}:{epic}",
                [one for one in mine if one.epic == epic],
            ),
        )
        found = []
        for name, key, usd, scope, costs in scopes:
            most, total = usd + self.extra.get(scope, 0.0), sum(one.usd for one in costs)
            if usd and total >= most:
                comma = "," if key == "epic_usd" else ""
                own = key == "epic_usd" and (project, epic) in self.budgets.epics
                remedy = (
                    f"raise it with `legion status epic {epic} --budget`"
                    if own
                    else f"raise `budgets.{key}` in your settings"
                )
                words = f"{name}{comma} of ${most:.2f} is spent (${total:.2f}): {remedy}"
                daily = key == "day_usd"
                found.append(
                    SpentBudget(
                        words=words,
                        name=name,
                        daily=daily,
                        scope=scope,
                        project=project,
                        usd=usd,
                        most=most,
                        total=total,
                    )
                )
        return tuple(found)


def balance(
    budgets: Budgets, spent: Iterable[EpicSpending], today: str, extra: Mapping[str, float] | None = None
) -> BudgetBalance:
    return BudgetBalance(budgets=budgets, spent=tuple(spent), today=today, extra=extra or {})
