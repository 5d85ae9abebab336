"""The person's [governor], [budgets], [rhythm], [standing], [hooks] and [notify]: when work may start, and its news.

No repository can set these: they run as the person, outside of every sandbox.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from legion.config.base.settings import Unfit, flag, number, setting, text, texts, whole
from legion.domain.agents.agent import ALL_ROLES, LEVELS, MOST, ExtraRight, ExtraRights, Rights, opened
from legion.domain.leader.briefing import HANDOVER_LIMIT
from legion.domain.notifications import NotificationKind
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


def _role_fault(role: str) -> str | None:
    return None if role.strip() else "is no name of a role"


def _roles(help: str) -> Any:
    return texts(allowed=f'a list of roles, or ["{ALL_ROLES}"]', fault=_role_fault, help=help)


@dataclass(frozen=True, kw_only=True)
class StandingSettings:
    most: int = whole(MOST, 1, 1000, help="How many standing agents there may be at once, in all projects together.")
    levels: int = whole(LEVELS, 1, 20, help="How deep the tree of agents may be.")
    tell_anybody: tuple[str, ...] = _roles("Roles that may write to every standing agent, in any project.")
    interrupt_anybody: tuple[str, ...] = _roles("Roles that may interrupt every agent except those above them.")
    fire_anybody: tuple[str, ...] = _roles("Roles that may fire every agent except those above them.")
    choose_driver: tuple[str, ...] = _roles("Roles whose tickets may name one of your drivers, or `standing`.")

    approve_plans: tuple[str, ...] = _roles('Roles whose leaders may approve plans in your place: "leader", or none.')
    handover_tokens: int = whole(
        HANDOVER_LIMIT, 1000, 2_000_000, help="Tokens of a leader's conversation at which it continues in a fresh one."
    )

    @property
    def top(self) -> Rights:
        """The person's own seat: its limits bound all standing agents."""
        return Rights(headcount=self.most, depth=self.levels)

    @property
    def opened(self) -> ExtraRights:
        return opened(
            {
                ExtraRight.TELL: self.tell_anybody,
                ExtraRight.INTERRUPT: self.interrupt_anybody,
                ExtraRight.FIRE: self.fire_anybody,
                ExtraRight.DRIVER: self.choose_driver,
                ExtraRight.APPROVE: self.approve_plans,
            }
        )


_NAMES = tuple(occasion.value for occasion in NotificationKind)


def _split_command(value: object) -> tuple[str, ...]:
    if not isinstance(value, str):
        raise Unfit(value)
    try:
        return tuple(shlex.split(value))
    except ValueError:
        raise Unfit(value) from None


def _command(help: str) -> Any:
    allowed = "a command line with balanced quotes, or empty"
    return setting((), allowed=allowed, help=help, read=_split_command, show=shlex.join)


def _is_web(value: str) -> bool:
    try:
        place = urlsplit(value)
        return value == "" or (place.scheme in ("http", "https") and bool(place.hostname))
    except ValueError:
        return False


def _web(help: str) -> Any:
    return text("", allowed="a http:// or https:// address, or empty", fits=_is_web, secret=True, help=help)


@dataclass(frozen=True, kw_only=True)
class HookSettings:
    """Commands of the person's. No shell runs them; variables such as LEGION_EVENT describe the event."""

    done: tuple[str, ...] = _command("Runs when a ticket has landed.")
    failed: tuple[str, ...] = _command("Runs when a ticket has failed.")
    question: tuple[str, ...] = _command("Runs when something waits for you.")
    all_done: tuple[str, ...] = _command("Runs when every ticket of a project has ended.")
    task_created: tuple[str, ...] = _command("Runs before a ticket is created; exit code 2 refuses it.")
    task_completed: tuple[str, ...] = _command("Runs on a change that passed its proofs; exit code 2 sends it back.")
    teammate_idle: tuple[str, ...] = _command(
        "Runs when a standing agent ends its turn; exit code 2 makes it continue with what the hook prints on stderr."
    )
    before_land: tuple[str, ...] = _command("Runs on a change that would land now; exit code 2 sends it back.")
    timeout: float = number(
        60.0, 0.1, 3600, unit="seconds", help="How long one of these four may take before it decides nothing."
    )


@dataclass(frozen=True, kw_only=True)
class NotifySettings:
    on: tuple[str, ...] = texts(
        ("failed", "question", "all_done"),
        allowed="a list of done, failed, question and all_done",
        fault=lambda name: None if name in _NAMES else f"is none of {', '.join(_NAMES)}",
        help="The events to notify you of.",
    )
    desktop: bool = flag(False, help="Whether your desktop shows it.")
    quiet: QuietHours | None = quiet_hours("Hours of your local time in which none is sent; hooks run all the same.")
    webhook: str = _web("Gets it as JSON, by POST.")
    ntfy: str = _web("Your topic at a server of ntfy, such as https://ntfy.sh/my-topic.")
