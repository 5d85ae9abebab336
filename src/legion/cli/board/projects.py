"""`legion status projects`: the repositories that this daemon works on."""

from __future__ import annotations

from collections.abc import Iterator

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import Cell, Colour, Screen, count, sanitize
from legion.wire.projects import ProjectLine, ProjectList


@command("projects", example="legion status projects")
def projects(call: CommandCall) -> None:
    """List the projects of this daemon: name, folder, branch, open tickets, landed commits to collect."""
    found = call.legion().projects()
    call.answer(found, lambda: lines_of(found, call.screen))


def lines_of(found: ProjectList, screen: Screen) -> Iterator[str]:
    if not found.projects:
        yield "No project yet: run `legion init` in a git repository."
    yield from screen.table([_row(project) for project in found.projects], indent=0, uncut=True)


def _row(project: ProjectLine) -> list[Cell]:
    state = ", ".join(
        text
        for text, holds in (
            ("paused", project.paused),
            ("not trusted", not project.trusted),
            (count(len(project.notes), "note"), bool(project.notes)),
        )
        if holds
    )
    return [
        Cell(sanitize(project.name), Colour.BOLD),
        Cell(sanitize(project.root)),
        Cell(sanitize(project.branch), Colour.DIM),
        Cell(f"{project.open} open"),
        Cell(f"{project.ahead} to collect" if project.ahead else ""),
        Cell(state, Colour.YELLOW),
    ]
