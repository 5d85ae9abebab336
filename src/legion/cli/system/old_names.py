"""`legion start`, `squad` and `switch`: commands of legion_cc's first program, which lead to those of today."""

from __future__ import annotations

import sys

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import sanitize
from legion.client.text.providers import provider_rows
from legion.wire.projects import SetNumbers

_PORT = click.IntRange(1, 65535)
_PORTS = "Note: {option} has no effect: `daemon.port` and `daemon.orchestrate_port` of your own file are the ports."


def _mention(call: CommandCall, **given: int | None) -> None:
    for name, value in given.items():
        if value is not None:
            call.say(_PORTS.format(option=f"--{name.replace('_', '-')}"))


def open_or_tell(call: CommandCall) -> int:
    """Open the terminal UI where there is a terminal."""
    call.legion()
    if call.json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        call.say("Legion is up. `legion status` shows the board; in a terminal, `legion` opens it.")
        return 0
    from legion.tui.start import run

    return run(call.data_dir, call.cwd)


@command("start", example="legion start --serve-only")
@click.option("--port", type=_PORT, metavar="N", help="Accepted from callers of legion_cc and without effect.")
@click.option("--control-port", type=_PORT, metavar="N", help="Accepted from callers of legion_cc and without effect.")
@click.option("--serve-only", is_flag=True, help="Only start Legion in the background, as `legion up` does.")
def start(call: CommandCall, port: int | None, control_port: int | None, serve_only: bool) -> int:
    """Start Legion and open its terminal UI: legion_cc's name for `legion`."""
    _mention(call, port=port, control_port=control_port)
    if serve_only:
        call.legion()
        call.say("Legion is up. `legion down` ends it.")
        return 0
    return open_or_tell(call)


@command("squad", example="legion squad --workers 2")
@click.option("--workers", type=click.IntRange(1, 64), metavar="N", help="How many agents work at once.")
@click.option("--base-port", type=_PORT, metavar="N", help="Accepted from callers of legion_cc and without effect.")
def squad(call: CommandCall, workers: int | None, base_port: int | None) -> int:
    """Open the terminal UI: legion_cc's name for `legion`.

    Agents start as tickets need them.
    """
    _mention(call, base_port=base_port)
    if workers is not None:
        call.say(sanitize(call.legion().set_numbers(SetNumbers(cwd=call.cwd, workers=workers)).message))
    return open_or_tell(call)


@command("switch", example="legion switch")
@click.option("--control-port", type=_PORT, metavar="N", help="Accepted from callers of legion_cc and without effect.")
def switch(call: CommandCall, control_port: int | None) -> None:
    """Show the providers and how to switch between them: legion_cc's name for `legion provider list`.

    `legion provider route set MODEL PROVIDER/MODEL` switches for one model, `claude.provider` in your settings for all.
    """
    _mention(call, control_port=control_port)
    found = call.legion().providers()
    call.show(found, provider_rows)
    call.say("Next: legion provider route set MODEL PROVIDER/MODEL, or `provider` under [claude] in your settings.")
