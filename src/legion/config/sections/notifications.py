"""[hooks] and [notify] in the person's file: what happens when a ticket is done, failed, asks, or all work has ended,
and the four hooks that can send work back.

No repository can set these: they run as the person, outside of every sandbox.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from legion.config.base.settings import Unfit, flag, number, setting, text, texts
from legion.config.sections.limits import QuietHours, quiet_hours
from legion.domain.notifications import NotificationKind

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
