"""`legion usage`: tokens, money and time of the work."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import click

from legion.cli.base.command import CommandCall, command
from legion.client.text.rows import Column, Columns, Row, listing, row
from legion.client.text.terminal import Colour, count
from legion.client.text.usage import rows
from legion.wire.notes import Lessons, NoteLine


@command("usage", example="legion usage\nlegion usage --week --by role\nlegion usage --lessons")
@click.option(
    "--by",
    type=click.Choice(("ticket", "agent", "role", "model", "day", "epic", "project", "driver")),
    default="ticket",
    help="Group the sums by this.",
)
@click.option("--lessons", "by_lesson", is_flag=True, help="Whether tickets with a lesson needed fewer attempts.")
@click.option("--today", "days", flag_value="1", help="Only today.")
@click.option("--week", "days", flag_value="7", help="Only the last seven days.")
@click.option("--month", "days", flag_value="30", help="Only the last thirty days.")
@click.option("--since", metavar="YYYY-MM-DD", default="", help="Only from this day on.")
def usage(call: CommandCall, by: str, by_lesson: bool, days: str | None, since: str) -> None:
    """Tokens, money and time of this project's work, what a landed ticket costs, and what was wasted.

    Waste is the cost of attempts that did not land. Days are in UTC. In a folder that belongs to no project, and with
    --by project: all projects.
    """
    if by_lesson:
        call.show(call.legion().lessons(call.cwd), _effect)
        return
    if days and since:
        raise click.UsageError("Choose one of --today, --week, --month and --since", click.get_current_context())
    if days:
        since = (datetime.now(UTC).date() - timedelta(days=int(days) - 1)).isoformat()
    found = call.legion().usage(call.cwd, by, since)
    call.show(found, rows)


def _average(attempts: float | None, tickets: int) -> str:
    return "no ticket yet" if attempts is None else f"{attempts:.1f} attempts in {count(tickets, 'ticket')}"


_EFFECT: Columns[NoteLine] = (
    Column("lesson", lambda one: str(one.id), Colour.BOLD, keeps=True),
    Column("with it", lambda one: _average(one.attempts, one.carried), keeps=True),
    Column("without it", lambda one: _average(one.attempts_without, one.without), keeps=True),
    Column("", lambda one: one.text),
)


def _effect(found: Lessons, width: int) -> list[Row]:
    accepted = [one for one in found.lessons if not one.proposed]
    return listing(_EFFECT, accepted, width, heads=True) or [row("No lesson is accepted: legion note lessons")]
