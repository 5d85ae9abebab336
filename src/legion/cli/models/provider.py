"""`legion provider`: adds, lists, tests and removes model providers. A key is never an argument."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import click

from legion.cli.base.command import CommandCall, command, group
from legion.cli.base.output import sanitize
from legion.cli.base.parameters import COMPLETIONS
from legion.cli.base.row_command import row_command
from legion.cli.base.texts import read_stdin
from legion.cli.models.login import login
from legion.client.text.providers import provider_rows
from legion.wire.errors import BadInput
from legion.wire.providers import AddProvider, ProviderRows

_AUTH = ("x-api-key", "bearer", "oauth", "copilot")
_KINDS = ("anthropic", "openai_chat", "openai_responses")
_ADD = """\
legion provider add anthropic
legion provider add anthropic --key-command 'pass show anthropic'
legion provider add ollama --model qwen3-coder --no-key
legion provider add local --kind openai_chat --url http://127.0.0.1:8080/v1 --no-key"""


_TEST = "legion provider test anthropic\nlegion provider test anthropic --model claude-opus-4-5"
names = COMPLETIONS["providers"]


def key_options(function: Callable[..., None]) -> Callable[..., None]:
    """The options that say where a key comes from."""
    options = [
        click.option("--key-file", default="", metavar="FILE", help="Read the key from this file of yours, mode 0600."),
        click.option(
            "--key-env", default="", metavar="VAR", help="Read the key from this variable of the daemon's environment."
        ),
        click.option("--key-command", default="", metavar="CMD", help="This program prints the key; no shell runs it."),
        click.option("--keyring", is_flag=True, help="Store the key in the system's keyring, or read it from there."),
        click.option("--key-stdin", is_flag=True, help="Read the key from stdin and store it."),
        click.option("--no-key", is_flag=True, help="It needs no key."),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def read_key(name: str, options: dict[str, str | bool | None]) -> dict[str, str | bool | None]:
    """The options for the request, with the key itself where Legion is to store it."""
    given = dict(options)
    from_stdin, key_file = bool(given.pop("key_stdin")), str(given["key_file"] or "")
    given["key"] = _key(name, from_stdin, given, key_file)
    if key_file:
        given["key_file"] = str(Path(key_file).expanduser().absolute())
    return given


@command("add", example=_ADD)
@click.argument("name", metavar="NAME", shell_complete=names)
@click.option("--url", default="", metavar="URL", help="Its address; known for many names.")
@click.option(
    "--kind",
    default="",
    type=click.Choice(("", *_KINDS)),
    metavar="|".join(_KINDS),
    help="Which API it speaks; known for many names.",
)
@click.option("--model", default=None, metavar="M", help="Request this model, whatever model an agent names.")
@click.option(
    "--auth",
    default="",
    type=click.Choice(("", *_AUTH)),
    metavar="|".join(_AUTH),
    help="How the key is sent; oauth is a token of `claude setup-token`.",
)
@key_options
def add(call: CommandCall, name: str, **options: str | bool | None) -> None:
    """Add a provider, or change one.

    Known by name: anthropic, claude, openai, openrouter, minimax, ollama, vllm, lmstudio.

    Without an option about the key it prompts for it, hides it, and stores it in a file that only you can read.
    For an existing provider, URL, kind, model and auth stay as they were if left out.
    """
    given = read_key(name, options)
    # click has converted each value
    call.report(call.legion().add_provider(AddProvider(name=name, **given)))  # type: ignore[arg-type]


def _key(name: str, from_stdin: bool, options: dict[str, str | bool | None], key_file: str) -> str:
    """The key itself, if Legion is to store it; else empty."""
    elsewhere = key_file or options["key_env"] or options["key_command"] or options["no_key"]
    if from_stdin:
        key = read_stdin("The key").strip()
        if not key:
            raise BadInput("There is no key on stdin; pipe it in, or remove --key-stdin.")
        return key
    if elsewhere:
        return ""
    if sys.stdin.isatty():
        hint = " (empty: it is in the keyring already)" if options["keyring"] else ""
        typed = click.prompt(
            f"Key of {sanitize(name)}{hint}", default="", show_default=False, hide_input=True, err=True
        )
        return str(typed).strip()
    if options["keyring"]:
        return ""
    raise BadInput("There is no key; pipe it in with --key-stdin, or see `legion provider add --help` for other ways.")


@command("list", example="legion provider list")
def listed(call: CommandCall) -> None:
    """List all providers with the source of their keys and their limits.

    A key itself is never shown; limits are as last reported.
    """
    found = call.legion().providers()
    call.show(found, provider_rows)
    if not call.json:
        call.notes(found.notes)


provider = group(
    "provider",
    """The providers of your models: add, login, list, test, remove.

Agents never see a key: their requests go through Legion's gateway, which adds it.
""",
    "legion provider add anthropic\nlegion provider test anthropic",
    add,
    login,
    listed,
    row_command("test", ProviderRows.try_provider, _TEST, waiting="Asking the provider"),
    row_command("remove", ProviderRows.remove_provider, "legion provider remove anthropic"),
)
