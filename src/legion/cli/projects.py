"""Commands about the project: init, trust, collect."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from legion.cli.command import Call, command
from legion.cli.output import Cell, Colour, Screen, count, harmless, harmless_lines
from legion.cli.progress import progress
from legion.wire.errors import NotFound
from legion.wire.projects import AddProject, Config, ProjectAdded, Where


@command("init", example="legion init\nlegion init ~/src/shop --dry-run")
@click.argument("path", default=".")
@click.option("--dry-run", is_flag=True, help="Show what would be written; change nothing.")
@click.option("--remove", is_flag=True, help="Forget the project; the repository stays as it is.")
def init(call: Call, path: str, dry_run: bool, remove: bool) -> None:
    """Make a git repository a project.

    Writes a legion.toml guessed from what the repository is, unless there is one, and trusts what it wrote.
    """
    if dry_run and remove:
        raise click.UsageError("--dry-run and --remove do not go together", click.get_current_context())
    place = Path(call.cwd, path).expanduser()
    if not place.is_dir():
        raise NotFound(f"There is no folder {harmless(str(place))}; name the folder of a git repository.")
    legion = call.legion()
    if remove:
        gone = legion.remove_project(Where(cwd=str(place)))
        call.answer(gone, lambda: [harmless(gone.message)])
        _notes(call, gone.notes)
        return
    with progress("Preparing the project"):
        added = legion.add_project(AddProject(path=str(place), dry_run=dry_run))
    call.answer(added, lambda: _added(added, call.screen))
    _notes(call, added.notes)
    if not call.json and not dry_run:
        call.say(
            "Next: legion dispatch -t TITLE TEXT" if added.trusted else "Next: read legion.toml, then legion trust"
        )


def _added(added: ProjectAdded, screen: Screen) -> Iterator[str]:
    if added.dry_run:
        yield from harmless_lines(added.config_text.rstrip("\n"))
        return
    yield screen.line(Cell(harmless(added.name), Colour.BOLD), Cell(" is a project of Legion."))
    written = (
        "written, and trusted"
        if added.wrote_config
        else "found" + (", trusted" if added.trusted else ", not trusted yet")
    )
    facts = [
        ("repository", added.root),
        ("branch", added.branch),
        ("settings", f"{added.config_file} ({written})"),
        ("worktrees", added.worktrees),
        ("hub", added.hub),
    ]
    yield from screen.table([[Cell(name, Colour.DIM), Cell(harmless(value))] for name, value in facts])


@command("trust", example="legion trust --show\nlegion trust")
@click.option("--show", is_flag=True, help="Only show the commands that would be trusted.")
def trust(call: Call, show: bool) -> None:
    """Allow the commands of this project's legion.toml, as the file is now.

    None of them runs before. When the file changes, Legion asks again.
    """
    legion = call.legion()
    config = legion.config(call.cwd)
    if show:
        call.answer(config, lambda: _commands(config, call.screen))
        return
    if not call.json:
        for line in _commands(config, call.screen):
            call.say(line)
    done = legion.trust(Where(cwd=call.cwd))
    call.answer(done, lambda: [harmless(done.message)])
    _notes(call, done.notes)


def _commands(config: Config, screen: Screen) -> Iterator[str]:
    """The commands of the repository's file: what trust is about."""
    state = "trusted" if config.trusted else "not trusted yet"
    yield screen.line(Cell(f"{harmless(config.project_file)} ({state})", Colour.BOLD))
    rows = [
        [Cell(harmless(setting.key)), Cell(harmless(str(setting.value)))]
        for setting in config.settings
        if setting.key.endswith("run") and setting.key.split(".")[0] in ("setup", "checks") and setting.value
    ]
    yield from screen.table(rows) or ["  It has no commands."]


@command("collect", example="legion collect --wait")
@click.option("--wait", is_flag=True, help="First wait until all tickets of the project have ended.")
def collect(call: Call, wait: bool) -> int:
    """Bring landed changes into your branch, by fast-forward only.

    The one command that writes to your repository. Where it cannot be done safely it says so and changes nothing.
    """
    code = 0
    if wait:
        from legion.cli.waiting import until_settled

        code = until_settled(call, [], all_projects=False, timeout=None).code
    with progress("Collecting"):
        got = call.legion().collect(Where(cwd=call.cwd))
    call.answer(got, lambda: [harmless(got.message)])
    if got.commits and not call.json:
        moved = f"{harmless(got.branch)}: {got.old[:9]} to {got.new[:9]}"
        call.say(f"{moved}, {count(got.commits, 'commit')}, {count(got.files, 'file')}.")
    return code


def _notes(call: Call, notes: list[str]) -> None:
    for note in notes:
        call.say(f"Note: {harmless(note)}")
