"""`legion provider login`: log in to a provider with a browser instead of a key."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import Any

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import sanitize
from legion.cli.base.progress import progress
from legion.cli.base.row_command import described_by, filled
from legion.wire.errors import BadInput, LegionError
from legion.wire.providers import AddProvider, BeginLogin, FinishLogin, LoginState

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
