"""`legion provider` with its logins, routes and models. A key is never an argument."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from legion.cli.base.command import CommandCall, command, group
from legion.cli.base.output import progress, sanitize
from legion.cli.base.parameters import COMPLETIONS
from legion.cli.base.row_command import described_by, filled, row_command
from legion.cli.base.texts import read_stdin
from legion.client.text.providers import account_rows, model_rows, provider_rows, route_rows
from legion.wire.errors import BadInput, LegionError
from legion.wire.providers import AddProvider, BeginLogin, FinishLogin, LoginState, ProviderRows, Providers

_CLAUDE = "claude"


@described_by(BeginLogin)
@command("login", example="legion provider login claude\nlegion provider login copilot --unofficial --model gpt-5")
@click.argument("name", metavar="claude|copilot", type=click.Choice((_CLAUDE, "copilot")))
def login(call: CommandCall, name: str, **given: Any) -> None:
    """Log in with a browser, and add the provider.

    `claude` runs `claude setup-token`, whose token is valid for a year, and asks you for it. `copilot` shows a code
    for you to confirm at GitHub; that login is unofficial, so it needs --unofficial.
    """
    if name == _CLAUDE:
        _claude(call, given["model"])
        return
    wanted = filled(BeginLogin, given, call.cwd, name=name)
    login_started = call.legion().begin_login(wanted)
    call.say(f"Open {sanitize(login_started.url)} and type {sanitize(login_started.code)}")
    state = LoginState(done=False, message="")
    with progress("Waiting for you to confirm it"):
        while not state.done:
            state = call.legion().finish_login(FinishLogin(id=login_started.id))
    call.report(state)


def _claude(call: CommandCall, model: str) -> None:
    program = shutil.which(_CLAUDE)
    if program is None:
        raise BadInput("`claude` is not on your PATH; install Claude Code, or use `legion provider add anthropic`.")
    if not sys.stdin.isatty():
        raise BadInput("This needs a terminal; pipe a token into `legion provider add claude --key-stdin` instead.")
    if subprocess.call([program, "setup-token"]) != 0:
        raise LegionError("`claude setup-token` failed; run it by itself to see why.")
    key = click.prompt("The token that it showed", hide_input=True, err=True).strip()
    done = call.legion().add_provider(AddProvider(name=_CLAUDE, key=key, model=model or None))
    call.report(LoginState(done=True, message=done.message, notes=done.notes))


_ADD = """\
legion provider add anthropic
legion provider add anthropic --key-command 'pass show anthropic'
legion provider add ollama --model qwen3-coder --no-key
legion provider add local --kind openai_chat --url http://127.0.0.1:8080/v1 --no-key"""


_TEST = "legion provider test anthropic\nlegion provider test anthropic --model claude-opus-4-5"
names = COMPLETIONS["providers"]


KEY_STDIN = click.option("--key-stdin", is_flag=True, help="Read the key from stdin and store it.")
SOURCES = ("key_file", "key_env", "key_command", "keyring", "no_key")


def with_key(given: dict[str, Any]) -> dict[str, Any]:
    """The options with the key itself where Legion is to store it."""
    key_file = given["key_file"]
    if key_file:
        key_file = str(Path(key_file).expanduser().absolute())
    return {**given, "key": _key(given), "key_file": key_file}


@described_by(AddProvider)
@command("add", example=_ADD)
@KEY_STDIN
def add(call: CommandCall, **given: Any) -> None:
    """Add a provider, or change one.

    Known by name: anthropic, claude, openai, openrouter, minimax, ollama, vllm, lmstudio.

    Without an option about the key it prompts for it, hides it, and stores it in a file that only you can read.
    For an existing provider, URL, kind, model and auth stay as they were if left out.
    """
    call.report(call.legion().add_provider(filled(AddProvider, with_key(given), call.cwd)))


def _key(options: dict[str, Any]) -> str:
    """The key itself, if Legion is to store it; else empty."""
    elsewhere = options["key_file"] or options["key_env"] or options["key_command"] or options["no_key"]
    if options["key_stdin"]:
        key = read_stdin("The key").strip()
        if not key:
            raise BadInput("There is no key on stdin; pipe it in, or remove --key-stdin.")
        return key
    if elsewhere:
        return ""
    if sys.stdin.isatty():
        hint = " (empty: it is in the keyring already)" if options["keyring"] else ""
        typed = click.prompt(
            f"Key of {sanitize(options['name'])}{hint}", default="", show_default=False, hide_input=True, err=True
        )
        return str(typed).strip()
    if options["keyring"]:
        return ""
    raise BadInput("There is no key; pipe it in with --key-stdin, or see `legion provider add --help` for other ways.")


def _say_notes(call: CommandCall, found: Providers) -> None:
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
    row_command("list", ProviderRows.providers, "legion provider list", shows=provider_rows, then=_say_notes),
    row_command("test", ProviderRows.try_provider, _TEST, waiting="Asking the provider"),
    row_command("remove", ProviderRows.remove_provider, "legion provider remove anthropic"),
)


_LOGINS = "Logins by provider, in the order in which they are asked, with their limits as last reported."
_REMOVE_LOGIN = "Remove a login, and the key that Legion stored for it."


@described_by(AddProvider, "name", *SOURCES)
@command("add", example="legion provider account add work --of claude --key-command 'pass show claude-work'")
@click.option("--of", "first", required=True, metavar="PROVIDER", shell_complete=names, help="The provider.")
@KEY_STDIN
def _add_login(call: CommandCall, first: str, **given: Any) -> None:
    """Add a further login at a provider that you have. Address, API and model are those of the provider.

    Without an option about the key it prompts for it, hides it, and stores it in a file that only you can read.
    """
    wanted = filled(AddProvider, with_key(given), call.cwd, account_of=first)
    call.report(call.legion().add_provider(wanted))


_logins = row_command("list", ProviderRows.providers, "legion provider account list", shows=account_rows, help=_LOGINS)
account = group(
    "account",
    """Several logins at one provider: add, list, use, remove.

A request that a login refuses for its limit goes to the next one; new runs start with the first that has room.
""",
    "legion provider account add work --of claude\nlegion provider account list\nlegion provider account use work",
    _logins,
    _add_login,
    row_command("use", ProviderRows.use_account, "legion provider account use work"),
    row_command("remove", ProviderRows.remove_provider, "legion provider account remove work", help=_REMOVE_LOGIN),
    alone=_logins,
)


_SET = """\
legion provider route set 'claude-haiku-*' ollama/qwen3-coder
legion provider route set 'claude-*' anthropic openrouter/anthropic/claude-sonnet-4.5
legion provider route set '*' ollama/qwen3-coder --role qa
legion provider route set 'claude-*' anthropic openrouter/z-ai/glm-4.6 --most-usd 5"""


route = group(
    "route",
    """Routes from models to providers: set, list, remove.

Without a route every request goes to the provider of the run.
""",
    "legion provider route set 'claude-haiku-*' ollama/qwen3-coder\nlegion provider route list",
    row_command("set", ProviderRows.set_route, _SET),
    row_command("list", ProviderRows.routes, "legion provider route list", shows=route_rows),
    row_command("remove", ProviderRows.remove_route, "legion provider route remove 'claude-haiku-*'"),
)
_PROVIDER = click.Argument(["name"], metavar="[PROVIDER]", default="", shell_complete=COMPLETIONS["providers"])
models = row_command(
    "models",
    ProviderRows.models,
    "legion provider models\nlegion provider models ollama",
    _PROVIDER,
    shows=model_rows,
    waiting="Asking for models",
)
