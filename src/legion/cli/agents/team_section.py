"""The section of a ticket's page about its team: roles, runs and advice."""

from __future__ import annotations

from collections.abc import Iterator

from legion.cli.base.output import Cell, Colour, Screen, sanitize
from legion.wire.teams import AdviceLine, CrewLine, StageLine

PARTS = {"advise": "advises", "build": "builds", "read": "reads"}
_SHORT = 5
"""Lines of an advice, unless everything is asked for."""


def section(crew: CrewLine | None, screen: Screen, *, full: bool) -> Iterator[str]:
    """Empty for a ticket with one agent: the rest of the page is about that agent."""
    if crew is None or (len(crew.stages) == 1 and not crew.changed):
        return
    yield ""
    yield screen.bold(f"Team {sanitize(crew.team)}")
    yield from screen.table([_row(stage) for stage in crew.stages])
    if crew.changed:
        yield from screen.paragraph(sanitize(crew.changed))
    for one in crew.advice:
        yield from _advice(one, screen, full=full)


def _row(stage: StageLine) -> list[Cell]:
    runs = ", ".join(map(str, stage.runs))
    did = f"run{'s' if len(stage.runs) > 1 else ''} {runs}" if stage.runs else "not yet"
    return [
        Cell(sanitize(stage.role)),
        Cell(PARTS.get(stage.part, stage.part)),
        Cell(sanitize(stage.model), Colour.DIM),
        Cell(did, Colour.DIM),
    ]


def _advice(one: AdviceLine, screen: Screen, *, full: bool) -> Iterator[str]:
    again = ", for fresh eyes" if one.turn else ""
    yield screen.line(Cell(f"{sanitize(one.role)} advised{again}", Colour.DIM), indent=2)
    yield from screen.paragraph(one.text, indent=4, most_lines=None if full else _SHORT)
