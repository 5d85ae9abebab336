"""Parameters that several commands share, with shell completion."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from legion.cli.base.output import sanitize
from legion.cli.base.texts import valid_text
from legion.client.discovery import find
from legion.client.legion import Legion
from legion.system.paths import default_data_dir
from legion.wire.errors import LegionError
from legion.wire.text import names_a_ticket

Completion = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
BIGGEST = 2**63 - 1


class TicketNumber(click.ParamType[int]):
    """12 or #12."""

    name = "N"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        digits = str(value).removeprefix("#")
        if not (digits.isascii() and digits.isdigit() and 1 <= int(digits[:20]) <= BIGGEST):
            self.fail(
                f"`{sanitize(str(value))[:40]}` is no ticket number; `legion status` shows the numbers", param, ctx
            )
        return int(digits)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Open tickets by number. Completion never starts the daemon."""
        try:
            tickets = _running(ctx).status(None).tickets
        except LegionError:
            return []
        found = [ticket for ticket in tickets if str(ticket.id).startswith(incomplete.removeprefix("#"))]
        return [CompletionItem(str(ticket.id), help=sanitize(ticket.title)[:60]) for ticket in found]


class AgentOrTicket(click.ParamType[int | str]):
    """12 or #12 for the agent of a ticket (`names_a_ticket`); anything else for a standing agent."""

    name = "ID"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        word = str(value)
        if word.startswith("#") or names_a_ticket(word):
            return TICKET.convert(word, param, ctx)
        return valid_text(word, "ID")

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        try:
            standing = _running(ctx).agents().agents
        except LegionError:
            return []
        found = [agent for agent in standing if agent.name.startswith(incomplete)]
        named = [CompletionItem(agent.name, help=sanitize(agent.role or agent.doing)[:60]) for agent in found]
        return [*named, *TICKET.shell_complete(ctx, param, incomplete)]


class TicketOrAll(click.ParamType[int | None]):
    """12, or `all` as None."""

    name = "N|all"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int | None:
        return None if value is None or value == "all" else TICKET.convert(value, param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        every = [CompletionItem("all")] if "all".startswith(incomplete) else []
        return [*TICKET.shell_complete(ctx, param, incomplete), *every]


class TicketNumbers(click.ParamType[list[int]]):
    """3,4"""

    name = "N,N"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> list[int]:
        if isinstance(value, list):
            return value
        parts = [word.strip() for word in str(value).split(",")]
        return [TICKET.convert(word, param, ctx) for word in parts if word]

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Completes the last number and keeps those before it."""
        before, comma, last = incomplete.rpartition(",")
        found = TICKET.shell_complete(ctx, param, last)
        return [CompletionItem(f"{before}{comma}{item.value}", help=item.help) for item in found]


class Seconds(click.FloatRange):
    """A finite number of seconds: click also accepts `nan` and `inf`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:  # noqa: ANN401
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"`{sanitize(str(value))[:40]}` is no number of seconds; write one like 600", param, ctx)
        return number


def files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="file")]


def folders(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="dir")]


def drivers(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The drivers that the person's settings define."""
    try:
        settings = _running(ctx).config(None).settings
    except LegionError:
        return []
    keys = [setting.key.split(".") for setting in settings]
    names = dict.fromkeys(key[1] for key in keys if key[0] == "drivers" and len(key) > 2)
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def completes(ask: Callable[[Legion], Iterable[tuple[str, str]]]) -> Completion:
    """Completion of names, with a word about each. It never starts the daemon."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        try:
            found = list(ask(_running(ctx)))
        except (LegionError, OSError):
            return []
        return [CompletionItem(name, help=sanitize(text)[:60]) for name, text in found if name.startswith(incomplete)]

    return complete


teams = completes(lambda legion: ((one.name, one.about) for one in legion.teams(_here()).teams))
roles = completes(lambda legion: ((one.name, one.about) for one in legion.roles(_here()).roles))
_providers = completes(lambda legion: ((one.name, one.url) for one in legion.providers().providers))
COMPLETIONS = {
    "teams": teams,
    "team": teams,
    "roles": roles,
    "driver": drivers,
    "cwd": folders,
    "drivers": completes(lambda legion: ((one.name, one.title) for one in legion.drivers().drivers)),
    "providers": _providers,
    "provider": _providers,
    "machines": completes(lambda legion: ((one.name, "") for one in legion.machines().machines if not one.head)),
    "templates": completes(lambda legion: ((one.name, one.about) for one in legion.templates(_here()).templates)),
    "sessions": completes(lambda legion: ((one.name, one.branch) for one in legion.sessions(_here()).sessions)),
}
"""By what a row is about, and by the name of a field."""


def _here() -> str:
    return str(Path.cwd())


def _running(ctx: click.Context) -> Legion:
    return find(ctx.params.get("data_dir") or default_data_dir())


TICKET = TicketNumber()
AGENT_OR_TICKET = AgentOrTicket()
TICKET_OR_ALL = TicketOrAll()
TICKETS = TicketNumbers()

ticket_argument = click.argument("id", metavar="N", type=TICKET)
