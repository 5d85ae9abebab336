"""`legion usage`: tokens, money and time of the work."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import Cell, Colour, Screen, count, sanitize
from legion.client.text.usage import rows
from legion.wire.notes import Lessons


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
        taught = call.legion().lessons(call.cwd)
        call.answer(taught, lambda: effect_lines(taught, call.screen))
        return
    if days and since:
        raise click.UsageError("Choose one of --today, --week, --month and --since", click.get_current_context())
    if days:
        since = (datetime.now(UTC).date() - timedelta(days=int(days) - 1)).isoformat()
    found = call.legion().usage(call.cwd, by, since)
    call.show(found, rows)


def effect_lines(found: Lessons, screen: Screen) -> list[str]:
    accepted = [one for one in found.lessons if not one.proposed]
    if not accepted:
        return ["No lesson is accepted: legion note lessons"]
    head = [Cell(word, Colour.DIM) for word in ("lesson", "with it", "without it", "")]
    rows = [
        [
            Cell(str(one.id), Colour.BOLD),
            Cell(_average(one.attempts, one.carried)),
            Cell(_average(one.attempts_without, one.without)),
            Cell(sanitize(one.text)),
        ]
        for one in accepted
    ]
    return screen.table([head, *rows], indent=0)


def _average(attempts: float | None, tickets: int) -> str:
    return "no ticket yet" if attempts is None else f"{attempts:.1f} attempts in {count(tickets, 'ticket')}"
