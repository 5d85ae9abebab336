"""`legion forge assign`: make tickets of issues."""

from __future__ import annotations

from pathlib import Path

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import Cell, Colour, sanitize
from legion.cli.base.parameters import BIGGEST
from legion.cli.base.progress import progress
from legion.cli.base.texts import read_text
from legion.wire.errors import BadInput
from legion.wire.forge import Assigned, AssignIssues


@command(
    "assign", example="legion forge assign 12 14 --team pair --plan-first\nlegion forge assign --milestone 1.0 --watch"
)
@click.argument("issues", metavar="[ISSUE...]", type=click.IntRange(1, BIGGEST), nargs=-1)
@click.option("--milestone", default="", metavar="NAME", help="All open issues of a milestone, in the order they name.")
@click.option("--epic", default="", metavar="NAME", help="The epic of the tickets; the milestone's name if left out.")
@click.option("--model", default="", metavar="M", help="The model the agent should use.")
@click.option("--team", default="", metavar="NAME", help="The team that works on it.")
@click.option("--briefing", default="", metavar="TEXT", help="What the agent should know; - reads it from stdin.")
@click.option("--briefing-file", default="", metavar="PATH", help="The same from a file.")
@click.option("--plan-first", is_flag=True, help="Its agent only reads until you approve its plan.")
@click.option("--ask", is_flag=True, help="Its agent may ask: in `legion inbox` and on the issue.")
@click.option("-w", "--watch", is_flag=True, help="Follow the tickets until nothing more happens by itself.")
@click.option("--dry-run", is_flag=True, help="Only show what would become a ticket.")
def assign(
    call: CommandCall,
    issues: tuple[int, ...],
    milestone: str,
    epic: str,
    model: str,
    team: str,
    briefing: str,
    briefing_file: str,
    plan_first: bool,
    ask: bool,
    watch: bool,
    dry_run: bool,
) -> int:
    """Make a ticket of each of these issues of the project's forge.

    An issue that another branch claims already is left alone. Ends with 1 if none became a ticket. With --watch the
    exit codes are those of `legion wait`.
    """
    if briefing and briefing_file:
        raise BadInput("Give --briefing or --briefing-file, not both.")
    text = _file(briefing_file) if briefing_file else read_text(briefing, "--briefing") if briefing else ""
    wanted = AssignIssues(
        cwd=call.cwd,
        issues=list(issues),
        model=model,
        team=team,
        briefing=text,
        plan_first=plan_first,
        ask=ask,
        dry_run=dry_run,
        epic=epic,
        milestone=milestone,
    )
    with progress("Asking the forge"):
        found = call.legion().assign(wanted)
    call.answer(found, lambda: call.screen.table(_rows(found), indent=0))
    made = [one.ticket for one in found.issues if one.ticket]
    if watch and made:
        from legion.cli.tickets.wait import exit_code, until_settled

        return exit_code(call.legion(), until_settled(call, made, all_projects=False, timeout=None).state)
    return 0 if dry_run or any(one.ticket for one in found.issues) else 1


def _file(path: str) -> str:
    try:
        return Path(path).expanduser().read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        raise BadInput(f"{path} cannot be read as text: name another file.") from None


def _rows(found: Assigned) -> list[list[Cell]]:
    return [
        [
            Cell(f"#{one.issue}", Colour.BOLD),
            Cell(sanitize(one.message), Colour.GREEN if one.ticket else Colour.YELLOW),
            Cell(sanitize(one.branch), Colour.DIM),
            Cell(sanitize(one.title)),
        ]
        for one in found.issues
    ]
