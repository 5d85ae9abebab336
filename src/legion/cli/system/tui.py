"""`legion tui`: opens the terminal UI."""

from __future__ import annotations

from pathlib import Path

import click

from legion.cli.base.command import CommandCall, command
from legion.wire.errors import BadInput, NotFound


@command("tui", example="legion tui\nlegion tui ~/shop\nlegion tui --plain")
@click.argument("project", metavar="[PROJECT]", default="")
@click.option("--plain", is_flag=True, help="The same by lines, for screen readers and dull terminals.")
def tui(call: CommandCall, project: str, plain: bool) -> int:
    """Open the terminal UI of this project, or of PROJECT: a folder inside it, or its name.

    Without a command, `legion` does the same in a terminal. `?` shows the keys, docs/tui.md the screens.
    """
    if call.json:
        raise BadInput("The terminal UI has no JSON; use `legion status --json` or `legion status events --json`.")
    cwd = _folder(call, project) if project else call.cwd
    if plain:
        from legion.tui.plain import run_plain

        return run_plain(call.legion(), cwd)
    from legion.tui.start import run

    return run(call.data_dir, cwd)


def _folder(call: CommandCall, project: str) -> str:
    folder = Path(project).expanduser()
    if folder.is_dir():
        return str(folder.absolute())
    known = call.legion().status(None).projects
    found = next((one for one in known if one.name == project), None)
    if found is None:
        names = ", ".join(one.name for one in known) or "none yet"
        raise NotFound(f"There is no folder and no project `{project[:60]}`; the projects are: {names}.")
    return found.root
