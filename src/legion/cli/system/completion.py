"""`legion completion`: the script that makes the Tab key work."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from legion.cli.base.command import CommandCall, command
from legion.cli.base.shapes import Completion

SHELLS = ("bash", "zsh", "fish")
_EXAMPLE = """\
legion completion bash > ~/.local/share/bash-completion/completions/legion
legion completion zsh > "${fpath[1]}/_legion"
legion completion fish > ~/.config/fish/completions/legion.fish"""


@command("completion", example=_EXAMPLE)
@click.argument("shell", metavar="SHELL", type=click.Choice(SHELLS))
def completion(call: CommandCall, shell: str) -> None:
    """The script that completes commands, options and ticket numbers with the Tab key.

    Write it where your shell looks for completions, then open a new shell.
    """
    found = get_completion_class(shell)
    assert found is not None
    maker = found(click.get_current_context().find_root().command, {}, "legion", "_LEGION_COMPLETE")
    script = (maker.source_template % maker.source_vars()).strip()
    call.answer(Completion(shell=shell, script=script), lambda: [script])
