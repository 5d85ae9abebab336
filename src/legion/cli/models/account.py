"""`legion provider account`: several logins at one provider, used one after the other as their limits allow."""

from __future__ import annotations

import time
from collections.abc import Iterator

import click

from legion.cli.base.command import CommandCall, command, group
from legion.cli.base.output import Cell, Colour, Screen, sanitize
from legion.cli.base.texts import valid_text
from legion.cli.models.provider import key_options, limit_text, names, read_key
from legion.wire.providers import AddProvider, ProviderLine, Providers, RemoveProvider, UseAccount

_FULL = 0.97


@command("add", example="legion provider account add work --of claude --key-command 'pass show claude-work'")
@click.argument("name", metavar="NAME")
@click.option("--of", "first", required=True, metavar="PROVIDER", shell_complete=names, help="The provider.")
@key_options
def add(call: CommandCall, name: str, first: str, **options: str | bool | None) -> None:
    """Add a further login at a provider that you have. Address, API and model are those of the provider.

    Without an option about the key it prompts for it, hides it, and stores it in a file that only you can read.
    """
    wanted = AddProvider(name=valid_text(name, "NAME"), account_of=valid_text(first, "--of"), **read_key(name, options))  # type: ignore[arg-type]  # click has converted each value
    call.report(call.legion().add_provider(wanted))


@command("list", example="legion provider account list")
def listed(call: CommandCall) -> None:
    """Logins by provider, in the order in which they are asked, with their limits as last reported."""
    found = call.legion().providers()
    call.answer(found, lambda: _lines(found, call.screen))


def _lines(found: Providers, screen: Screen) -> Iterator[str]:
    groups: dict[str, list[ProviderLine]] = {}
    for one in found.providers:
        groups.setdefault(one.account_of or one.name, []).append(one)
    if not groups:
        yield "No provider yet; `legion provider add anthropic` adds one."
    for name, logins in groups.items():
        yield screen.bold(sanitize(name))
        asked = next((one.name for one in logins if not _is_full(one)), "")
        rows = [
            [
                Cell(sanitize(one.name)),
                Cell("asked first" if one.name == asked else "limit reached" if _is_full(one) else "", Colour.GREEN),
                Cell(limit_text(one.limit) if one.limit is not None else "no limit reported", Colour.DIM),
            ]
            for one in logins
        ]
        yield from screen.table(rows)


def _is_full(one: ProviderLine) -> bool:
    limit = one.limit
    if limit is None or (limit.resets_at is not None and limit.resets_at <= time.time()):
        return False
    return limit.status == 429 or (limit.utilization or 0.0) >= _FULL


@command("use", example="legion provider account use work")
@click.argument("name", metavar="NAME", shell_complete=names)
def use(call: CommandCall, name: str) -> None:
    """Ask this login first. A running conversation stays with its login while that keeps its prompt in a cache."""
    call.report(call.legion().use_account(UseAccount(name=valid_text(name, "NAME"))))


@command("remove", example="legion provider account remove work")
@click.argument("name", metavar="NAME", shell_complete=names)
@click.option("--yes", is_flag=True, help="Also while agents use it; their requests then fail.")
def remove(call: CommandCall, name: str, yes: bool) -> None:
    """Remove a login, and the key that Legion stored for it."""
    call.report(call.legion().remove_provider(RemoveProvider(name=valid_text(name, "NAME"), yes=yes)))


account = group(
    "account",
    """Several logins at one provider: add, list, use, remove.

A request that a login refuses for its limit goes to the next one; new runs start with the first that has room.
""",
    "legion provider account add work --of claude\nlegion provider account list\nlegion provider account use work",
    listed,
    add,
    use,
    remove,
    alone=listed,
)
