"""`legion native`: Agent Teams of Claude Code as their files show them. Only read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import Cell, Colour, Screen, sanitize
from legion.cli.base.shapes import NativeTaskLine, NativeTeamLine, NativeTeams
from legion.cli.imports import agent_teams
from legion.wire.errors import NotFound

_MARKS = {"completed": "✓", "in_progress": "●", "pending": "○"}


@command("native", example="legion native\nlegion native my-team")
@click.argument("team", required=False)
def native(call: CommandCall, team: str | None) -> None:
    """Teams and tasks of Claude Code's Agent Teams, from ~/.claude/teams and ~/.claude/tasks.

    `legion import ~/.claude/teams/NAME` makes tickets of the open tasks.
    """
    found = [agent_teams.team(place) for place in agent_teams.folders(Path.home())]
    if team is not None:
        found = [one for one in found if one.name == team]
        if not found:
            raise NotFound(f"~/.claude has no team {sanitize(team)[:60]}; `legion native` lists them.")
    shape = NativeTeams(teams=[_line(one) for one in found])
    call.answer(shape, lambda: _lines(shape, call.screen))


def _line(one: agent_teams.NativeTeam) -> NativeTeamLine:
    tasks = [
        NativeTaskLine(
            id=task.id, subject=task.subject, status=task.status, owner=task.owner, after=list(task.blocked_by)
        )
        for task in one.tasks
    ]
    members = [f"{name} ({kind})" if kind else name for name, kind in one.members]
    return NativeTeamLine(name=one.name, about=one.about, members=members, tasks=tasks, faults=list(one.broken))


def _lines(shape: NativeTeams, screen: Screen) -> Iterator[str]:
    if not shape.teams:
        yield "There are no Agent Teams in ~/.claude."
    for team in shape.teams:
        yield screen.line(Cell(sanitize(team.name), Colour.BOLD), Cell(f"  {sanitize(team.about)}", Colour.DIM))
        yield from screen.aside(sanitize(", ".join(team.members)))
        yield from screen.table([_row(one) for one in team.tasks])
        for fault in team.faults:
            yield screen.line(Cell(sanitize(fault), Colour.RED), indent=2)


def _row(one: NativeTaskLine) -> list[Cell]:
    after = f"after {', '.join(one.after)}" if one.after else ""
    return [
        Cell(_MARKS.get(one.status, "?")),
        Cell(f"#{sanitize(one.id)}"),
        Cell(sanitize(one.subject)),
        Cell(sanitize(one.owner), Colour.DIM),
        Cell(sanitize(after), Colour.DIM),
    ]
