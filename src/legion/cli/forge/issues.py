"""`legion forge assign`: make tickets of issues."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.parameters import BIGGEST
from legion.cli.base.progress import progress
from legion.cli.base.row_command import described_by, filled
from legion.client.text.rows import Column, Columns, Row, listing
from legion.client.text.terminal import Colour
from legion.wire.errors import BadInput
from legion.wire.forge import Assigned, AssignedLine, AssignIssues


@described_by(AssignIssues)
@command(
    "assign", example="legion forge assign 12 14 --team pair --plan-first\nlegion forge assign --milestone 1.0 --watch"
)
@click.argument("issues", metavar="[ISSUE...]", type=click.IntRange(1, BIGGEST), nargs=-1)
@click.option("--briefing-file", default="", metavar="PATH", help="The same from a file.")
@click.option("-w", "--watch", is_flag=True, help="Follow the tickets until nothing more happens by itself.")
def assign(call: CommandCall, issues: tuple[int, ...], briefing_file: str, watch: bool, **given: Any) -> int:
    """Make a ticket of each of these issues of the project's forge.

    An issue that another branch claims already is left alone. Ends with 1 if none became a ticket. With --watch the
    exit codes are those of `legion wait`.
    """
    if given["briefing"] and briefing_file:
        raise BadInput("Give --briefing or --briefing-file, not both.")
    if briefing_file:
        given["briefing"] = _file(briefing_file)
    wanted = filled(AssignIssues, given, call.cwd, issues=list(issues))
    with progress("Asking the forge"):
        found = call.legion().assign(wanted)
    call.show(found, _rows)
    made = [one.ticket for one in found.issues if one.ticket]
    if watch and made:
        from legion.cli.tickets.wait import exit_code, until_settled

        return exit_code(call.legion(), until_settled(call, made, all_projects=False, timeout=None).state)
    return 0 if wanted.dry_run or any(one.ticket for one in found.issues) else 1


def _file(path: str) -> str:
    try:
        return Path(path).expanduser().read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        raise BadInput(f"{path} cannot be read as text: name another file.") from None


_ISSUE: Columns[AssignedLine] = (
    Column("issue", lambda one: f"#{one.issue}", Colour.BOLD, keeps=True),
    Column("message", lambda one: one.message, lambda one: Colour.GREEN if one.ticket else Colour.YELLOW, keeps=True),
    Column("branch", lambda one: one.branch, Colour.DIM),
    Column("title", lambda one: one.title),
)


def _rows(found: Assigned, width: int) -> list[Row]:
    return listing(_ISSUE, found.issues, width)
