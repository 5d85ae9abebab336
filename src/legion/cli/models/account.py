"""`legion provider account`: several logins at one provider, used one after the other as their limits allow."""

from __future__ import annotations

import click

from legion.cli.base.command import CommandCall, command, group
from legion.cli.models.provider import key_options, names, read_key
from legion.client.text.providers import account_rows
from legion.wire.providers import AddProvider, RemoveProvider, UseAccount


@command("add", example="legion provider account add work --of claude --key-command 'pass show claude-work'")
@click.argument("name", metavar="NAME")
@click.option("--of", "first", required=True, metavar="PROVIDER", shell_complete=names, help="The provider.")
@key_options
def add(call: CommandCall, name: str, first: str, **options: str | bool | None) -> None:
    """Add a further login at a provider that you have. Address, API and model are those of the provider.

    Without an option about the key it prompts for it, hides it, and stores it in a file that only you can read.
    """
    wanted = AddProvider(name=name, account_of=first, **read_key(name, options))  # type: ignore[arg-type]  # click has converted each value
    call.report(call.legion().add_provider(wanted))


@command("list", example="legion provider account list")
def listed(call: CommandCall) -> None:
    """Logins by provider, in the order in which they are asked, with their limits as last reported."""
    found = call.legion().providers()
    call.show(found, account_rows)


@command("use", example="legion provider account use work")
@click.argument("name", metavar="NAME", shell_complete=names)
def use(call: CommandCall, name: str) -> None:
    """Ask this login first. A running conversation stays with its login while that keeps its prompt in a cache."""
    call.report(call.legion().use_account(UseAccount(name=name)))


@command("remove", example="legion provider account remove work")
@click.argument("name", metavar="NAME", shell_complete=names)
@click.option("--yes", is_flag=True, help="Also while agents use it; their requests then fail.")
def remove(call: CommandCall, name: str, yes: bool) -> None:
    """Remove a login, and the key that Legion stored for it."""
    call.report(call.legion().remove_provider(RemoveProvider(name=name, yes=yes)))


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
