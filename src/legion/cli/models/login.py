"""`legion provider login`: ways in that begin in a browser instead of with a key."""

from __future__ import annotations

import shutil
import subprocess
import sys

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import harmless
from legion.cli.base.progress import progress
from legion.cli.base.texts import checked
from legion.wire.errors import BadInput, LegionError
from legion.wire.providers import AddProvider, BeginLogin, FinishLogin, LoginState

_CLAUDE = "claude"


@command("login", example="legion provider login claude\nlegion provider login copilot --unofficial --model gpt-5")
@click.argument("name", metavar="claude|copilot", type=click.Choice((_CLAUDE, "copilot")))
@click.option("--unofficial", is_flag=True, help="You know that GitHub does not offer this, and want it all the same.")
@click.option("--model", default="", metavar="M", help="Ask it for this model, whatever an agent names.")
@click.option("--github", default="", metavar="URL", help="Your company's own GitHub.")
@click.option("--token-url", default="", metavar="URL", help="Where that one exchanges the login for tokens.")
@click.option("--url", default="", metavar="URL", help="Where that one's models are reached.")
def login(call: CommandCall, name: str, unofficial: bool, model: str, github: str, token_url: str, url: str) -> None:
    """Log in with a browser, and add the provider.

    `claude` runs `claude setup-token`, whose token is good for a year, and asks you for it. `copilot` shows a code
    for you to confirm at GitHub; that way in is unofficial, so it is off without --unofficial.
    """
    if name == _CLAUDE:
        _claude(call, model)
        return
    wanted = BeginLogin(
        name=name,
        unofficial=unofficial,
        model=checked(model, "--model"),
        github=checked(github, "--github"),
        token_url=checked(token_url, "--token-url"),
        url=checked(url, "--url"),
    )
    begun = call.legion().begin_login(wanted)
    call.say(f"Open {harmless(begun.url)} and type {harmless(begun.code)}")
    state = LoginState(done=False, message="")
    with progress("Waiting for you to confirm it"):
        while not state.done:
            state = call.legion().finish_login(FinishLogin(id=begun.id))
    _told(call, state)


def _claude(call: CommandCall, model: str) -> None:
    program = shutil.which(_CLAUDE)
    if program is None:
        raise BadInput("`claude` is not on your PATH: install Claude Code, or use `legion provider add anthropic`.")
    if not sys.stdin.isatty():
        raise BadInput("This needs a terminal: pipe a token into `legion provider add claude --key-stdin` instead.")
    if subprocess.call([program, "setup-token"]) != 0:
        raise LegionError("`claude setup-token` did not go well: try it by itself.")
    key = click.prompt("The token that it showed", hide_input=True, err=True).strip()
    done = call.legion().add_provider(AddProvider(name=_CLAUDE, key=key, model=checked(model, "--model") or None))
    _told(call, LoginState(done=True, message=done.message, notes=done.notes))


def _told(call: CommandCall, state: LoginState) -> None:
    call.answer(state, lambda: [harmless(state.message)])
    for note in state.notes:
        call.say(f"Note: {harmless(note)}")
