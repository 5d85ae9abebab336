"""[governor], [budgets] and [rhythm] in the person's file: when work may start, and what it may cost. Data only."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from legion.config.base.settings import Unfit, flag, number, setting, whole
from legion.domain.tickets.spec import MOST_BUDGET

_HOURS = re.compile(r"([01]?\d|2[0-3]):([0-5]\d) ?- ?([01]?\d|2[0-3]):([0-5]\d)")
_MINUTES = 60


@dataclass(frozen=True)
class QuietHours:
    """Minutes after midnight, local time. It may cross midnight."""

    start: int
    end: int

    def left(self, minute: float) -> float | None:
        """Minutes until the end, where this minute of the day is quiet."""
        length = (self.end - self.start) % (24 * _MINUTES)
        since = (minute - self.start) % (24 * _MINUTES)
        return length - since if since < length else None


def _hours(value: object) -> QuietHours | None:
    if value == "":
        return None
    found = _HOURS.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise Unfit(value)
    hour, minute, until_hour, until_minute = (int(part) for part in found.groups())
    quiet = QuietHours(hour * _MINUTES + minute, until_hour * _MINUTES + until_minute)
    if quiet.start == quiet.end:
        raise Unfit(value, "starts and ends at the same time")
    return quiet


def hours_of(text: str) -> QuietHours | None:
    """Hours as they are stored; None where the text says none."""
    try:
        return _hours(text)
    except Unfit:
        return None


def _shown(quiet: QuietHours | None) -> str:
    if quiet is None:
        return ""
    return "-".join(f"{minutes // _MINUTES:02}:{minutes % _MINUTES:02}" for minutes in (quiet.start, quiet.end))


def quiet_hours(help: str) -> Any:
    return setting(None, allowed='hours such as "22:00-07:00", or empty', help=help, read=_hours, show=_shown)


@dataclass(frozen=True, kw_only=True)
class GovernorSettings:
    on: bool = flag(True, help="Whether work slows down before a provider's limit and holds at it.")
    slow_from: float = number(
        0.8, 0.05, 1, unit="a share", help="From this share of a limit on, fewer agents start, one after the other."
    )
    stop_at: float = number(
        0.97, 0.05, 1, unit="a share", help="From this share on nothing starts before the limit's reset."
    )


@dataclass(frozen=True, kw_only=True)
class BudgetSettings:
    day_usd: float = number(
        0.0, 0, MOST_BUDGET, unit="dollars", help="What all work may cost on one day of UTC. 0: no limit."
    )
    project_usd: float = number(
        0.0, 0, MOST_BUDGET, unit="dollars", help="What each project may cost in all. 0: no limit."
    )
    epic_usd: float = number(0.0, 0, MOST_BUDGET, unit="dollars", help="What each epic may cost in all. 0: no limit.")


@dataclass(frozen=True, kw_only=True)
class StartSettings:
    stagger: float = number(0.0, 0, 3600, unit="seconds", help="The least time between two starts of agents.")
    quiet: QuietHours | None = quiet_hours(
        "Hours of your local time in which no agent starts; running agents continue."
    )
    waiting: int = whole(0, 0, 1000, help="How many tickets may wait for you before nothing new starts. 0: any number.")
