"""Commands about the program itself: demo, mcp, completion, help, version."""

from __future__ import annotations

import importlib
import shlex
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from legion import __version__
from legion.cli.base.command import CommandCall, command
from legion.cli.base.shapes import Completion, McpShape, Version
from legion.client.discovery import read_record
from legion.system.paths import DataDir, default_data_dir
from legion.wire.errors import LegionError

_COMPLETION = """\
legion config completion bash > ~/.local/share/bash-completion/completions/legion
legion config completion zsh > "${fpath[1]}/_legion"
legion config completion fish > ~/.config/fish/completions/legion.fish"""


@command(
    "demo", example="legion demo\nlegion demo --folder ~/legion-demo\nlegion demo --forge\nlegion demo --machines 3"
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="A new folder for all of it; a temporary one if left out.",
)
@click.option("--forge", is_flag=True, help="Instead: an issue becomes a merged pull request, at a GitHub on loopback.")
@click.option(
    "--machines",
    type=click.IntRange(2, 16),
    metavar="N",
    help="Instead: N machines, one of them cut off in the middle.",
)
def demo(call: CommandCall, folder: Path | None, forge: bool, machines: int | None) -> int:
    """Watch a complete run on a scratch repository: real Claude Code, scripted replies, no key, no network.

    It has its own daemon, gateway, data and settings, and stops them at the end. The repository stays. With --machines
    the agents are plain programs, and a private Postgres holds the board.
    """
    # Imported by name: the command line must not depend on what the demo needs.
    if machines is not None:
        play = importlib.import_module("legion.demo.machines.play")
        ended = play.main(folder, machines, as_json=call.json, screen=call.screen)
        return ended if isinstance(ended, int) else 0
    code = importlib.import_module("legion.demo.forge.play" if forge else "legion.demo.main").main(
        folder, as_json=call.json, screen=call.screen
    )
    return code if isinstance(code, int) else 0


@command("mcp", example="legion plugin mcp")
@click.option("--stdio", is_flag=True, help="Serve the tools on stdin and stdout, as the plugin does.")
def mcp(call: CommandCall, stdio: bool) -> None:
    """Print the address of Legion's tools over MCP, and the commands that add them to your own Claude Code.

    Prefer the first command: it gives away nothing. The second one writes a token into the other program's settings.
    A program that reads it there can use Legion's tools as you, and nothing else; `legion plugin remove` ends it.
    """
    bridge = importlib.import_module("legion.cli.plugin.command")
    if stdio:
        bridge.serve(call)
        return
    call.legion()
    record = read_record(call.data_dir)
    if record is None or not record.mcp:
        raise LegionError("The daemon that answers runs on another machine; run `legion plugin mcp` there.")
    found = McpShape(url=record.mcp, token_file=str(bridge.tools_token(DataDir(call.data_dir))))
    secret = f'"Authorization: Bearer $(cat {shlex.quote(found.token_file)})"'
    files = importlib.import_module("legion.cli.plugin.place")
    program = files.program_of_person(call.data_dir, Path(default_data_dir())).shell
    call.answer(
        found,
        lambda: [
            found.url,
            f"claude mcp add legion -- {program} plugin mcp --stdio",
            f"claude mcp add --transport http legion {found.url} --header {secret}",
        ],
    )


@command("completion", example=_COMPLETION)
@click.argument("shell", metavar="SHELL", type=click.Choice(("bash", "zsh", "fish")))
def completion(call: CommandCall, shell: str) -> None:
    """Print the script that completes commands, options and ticket numbers with the Tab key.

    Write it to your shell's folder for completions, then open a new shell.
    """
    found = get_completion_class(shell)
    assert found is not None
    maker = found(click.get_current_context().find_root().command, {}, "legion", "_LEGION_COMPLETE")
    script = (maker.source_template % maker.source_vars()).strip()
    call.answer(Completion(shell=shell, script=script), lambda: [script])


@command("help", example="legion help\nlegion help plan split\nlegion help all")
@click.argument("words", metavar="[COMMAND...] | all", nargs=-1)
def help_command(call: CommandCall, words: tuple[str, ...]) -> None:
    """Explain a command, or list all of them."""
    root = click.get_current_context().find_root()
    assert isinstance(root.command, click.Group)
    if words == ("all",):
        call.out(importlib.import_module("legion.cli.app").help_of_all(root).strip())
    elif words:
        name, found, rest = root.command.resolve_command(root, list(words))
        assert found is not None
        found.make_context(name, [*rest, "--help"], parent=root)
    else:
        call.out(root.get_help())


@command("version", example="legion version")
def version(call: CommandCall) -> None:
    """Print the version of this program."""
    call.answer(Version(version=__version__), lambda: [f"legion {__version__}"])
