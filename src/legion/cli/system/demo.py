"""`legion demo`."""

from __future__ import annotations

import importlib
from pathlib import Path

import click

from legion.cli.base.command import CommandCall, command


@command("demo", example="legion demo\nlegion demo --folder ~/legion-demo")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="A new folder for all of it; one among the temporary files if you name none.",
)
def demo(call: CommandCall, folder: Path | None) -> int:
    """Watch the whole job on a scratch repository: real Claude Code, scripted replies, no key, no network.

    It has a daemon, a gateway, data and settings of its own, and ends them when it is through. The repository stays.
    """
    # By name: the command line itself depends on nothing that the demo needs.
    code = importlib.import_module("legion.demo.main").main(folder, as_json=call.json, screen=call.screen)
    return code if isinstance(code, int) else 0
