"""`legion provider account`: several logins at one provider, used one after the other as their limits allow."""

from __future__ import annotations

from typing import Any

import click

from legion.cli.base.command import CommandCall, command, group
from legion.cli.base.row_command import described_by, filled, row_command
from legion.cli.models.provider import KEY_STDIN, SOURCES, names, with_key
from legion.client.text.providers import account_rows
from legion.wire.providers import AddProvider, ProviderRows

_LIST = "Logins by provider, in the order in which they are asked, with their limits as last reported."
_REMOVE = "Remove a login, and the key that Legion stored for it."


@described_by(AddProvider, "name", *SOURCES)
@command("add", example="legion provider account add work --of claude --key-command 'pass show claude-work'")
@click.option("--of", "first", required=True, metavar="PROVIDER", shell_complete=names, help="The provider.")
@KEY_STDIN
def add(call: CommandCall, first: str, **given: Any) -> None:
    """Add a further login at a provider that you have. Address, API and model are those of the provider.

    Without an option about the key it prompts for it, hides it, and stores it in a file that only you can read.
    """
    wanted = filled(AddProvider, with_key(given), call.cwd, account_of=first)
    call.report(call.legion().add_provider(wanted))


_list = row_command("list", ProviderRows.providers, "legion provider account list", shows=account_rows, help=_LIST)
account = group(
    "account",
    """Several logins at one provider: add, list, use, remove.

A request that a login refuses for its limit goes to the next one; new runs start with the first that has room.
""",
    "legion provider account add work --of claude\nlegion provider account list\nlegion provider account use work",
    _list,
    add,
    row_command("use", ProviderRows.use_account, "legion provider account use work"),
    row_command("remove", ProviderRows.remove_provider, "legion provider account remove work", help=_REMOVE),
    alone=_list,
)
