"""Commands that only inspect: worktrees, doctor, config."""

from __future__ import annotations

import json
from collections.abc import Iterator

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import Cell, Colour, Screen, sanitize, size, width
from legion.cli.base.progress import progress
from legion.cli.base.states import style_of, symbol
from legion.cli.project.setup import follow_trial
from legion.cli.system.restore import rebuild
from legion.client.http import NotRunning
from legion.wire.errors import LegionError
from legion.wire.projects import Config, Doctor, DoctorFinding, WorktreeList


@command("worktrees", example="legion status worktrees")
def worktrees(call: CommandCall) -> None:
    """List the worktrees of agents, their size, and the size of the trash."""
    found = call.legion().worktrees(call.cwd)
    call.answer(found, lambda: _worktrees(found, call.screen))


def _worktrees(found: WorktreeList, screen: Screen) -> Iterator[str]:
    yield from screen.note(sanitize(found.root), Colour.BOLD, indent=0)
    rows = [
        [
            Cell(sanitize(tree.path.removeprefix(f"{found.root}/"))),
            Cell(sanitize(tree.state), Colour.CYAN if tree.state == "in use" else Colour.DIM),
            Cell(f"#{tree.ticket}" if tree.ticket is not None else ""),
            Cell(size(tree.bytes)),
        ]
        for tree in found.worktrees
    ]
    yield from screen.table(rows) or ["  No worktrees."]
    total = sum(tree.bytes for tree in found.worktrees)
    rest = f"{size(total)} in worktrees, {size(found.trash_bytes)} in the trash"
    yield from screen.aside(rest)


@command("doctor", example="legion doctor\nlegion doctor --try")
@click.option(
    "--try", "again", is_flag=True, help="First try the checks again: as the code is, and with an error planted in it."
)
@click.option(
    "--rebuild", "restore", is_flag=True, help="Build a lost or damaged database again from the boards in the hubs."
)
@click.option("--yes", "sure", is_flag=True, help="Rebuild without asking.")
def doctor(call: CommandCall, again: bool, restore: bool, sure: bool) -> int:
    """Check this machine, the daemon and the project. Ends with 1 when something is wrong."""
    if restore:
        rebuild(call, sure)
        return 0
    if sure:
        raise click.UsageError("--yes only works with --rebuild")
    try:
        if again and follow_trial(call, call.cwd, again=True) is None:
            return 0
        with progress("Checking"):
            found = call.legion().doctor(call.cwd)
    except NotRunning:
        raise
    except LegionError as error:
        found = Doctor(ok=False, findings=[DoctorFinding(name="daemon", ok=False, detail=error.message, advice="")])
    call.answer(found, lambda: _findings(found, call.screen))
    return 0 if found.ok else LegionError.exit_code


def _findings(found: Doctor, screen: Screen) -> Iterator[str]:
    for finding in found.findings:
        state, word = ("failed", "no") if not finding.ok else ("done", "ok") if finding.known else ("parked", "?")
        mark = Cell(f"{symbol(screen, state)} {word:<3} ", style_of(state).colour)
        name, detail = Cell(f"{sanitize(finding.name)}: ", Colour.BOLD), sanitize(finding.detail)
        fits = width(mark.text + name.text + detail) <= screen.width
        yield screen.line(mark, name, Cell(detail if fits else ""))
        if not fits:
            yield from screen.paragraph(detail, indent=6)
        if finding.advice:
            yield from screen.paragraph(finding.advice, indent=6)


@command("config", example="legion config --explain")
@click.option("--explain", is_flag=True, help="Also show where each setting comes from.")
def config(call: CommandCall, explain: bool) -> None:
    """Show the settings in force: yours and the project's."""
    found = call.legion().config(call.cwd)
    call.answer(found, lambda: _settings(found, call.screen, explain))


def _settings(found: Config, screen: Screen, explain: bool) -> Iterator[str]:
    rows = []
    for setting in found.settings:
        row = [Cell(sanitize(setting.key)), Cell(sanitize(json.dumps(setting.value, ensure_ascii=False)))]
        if explain:
            row.append(Cell(sanitize(setting.origin), Colour.DIM))
        rows.append(row)
    yield from screen.table(rows, indent=0, uncut=True)
    if explain:
        state = "trusted" if found.trusted else "not trusted yet: legion trust"
        yield ""
        yield from screen.note(f"yours      {sanitize(found.user_file)}", indent=0)
        if found.project_file:
            yield from screen.note(f"project's  {sanitize(found.project_file)} ({state})", indent=0)
