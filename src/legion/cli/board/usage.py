"""`legion usage`: tokens, money and time of the work."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.lesson_lines import effect_lines
from legion.cli.base.output import Cell, Colour, Screen, count, duration, sanitize, thousands
from legion.cli.base.texts import valid_text
from legion.cli.board.status import dollars
from legion.wire.usage import UsageReport, UsageShare

_NAMELESS = {"driver": "not known", "model": "no model", "epic": "no epic", "ticket": "no ticket"}
_HEAD = ("spent", "in", "out", "time", "runs", "landed", "each", "wasted")


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
    found = call.legion().usage(call.cwd, by, valid_text(since, "--since"))
    call.answer(found, lambda: _lines(found, call.screen))


def _lines(found: UsageReport, screen: Screen) -> Iterator[str]:
    if not found.shares:
        yield f"No agent has worked since {found.since}." if found.since else "No agent has worked yet."
        return
    rows = [_head(found.by), *(_row(share, found.by) for share in found.shares)]
    rows.append([Cell(cell.text, Colour.BOLD) for cell in _row(found.total, "")])
    yield from screen.table(rows, indent=0)
    if found.total.usage.unpriced:
        unpriced = count(found.total.usage.unpriced, "request went", "requests went")
        yield from screen.aside(f"{unpriced} to models without a known price and are not in the sum")


def _head(by: str) -> list[Cell]:
    return [Cell(word, Colour.DIM) for word in (by, *_HEAD)]


def _row(share: UsageShare, by: str) -> list[Cell]:
    spent = share.usage
    each = "" if share.usd_per_landed is None else dollars(share.usd_per_landed)
    return [
        Cell(_name(share, by)),
        Cell("not known" if spent.unpriced and not spent.usd else dollars(spent.usd)),
        Cell(thousands(spent.input + spent.cache_read + spent.cache_write)),
        Cell(thousands(spent.output)),
        Cell(duration(share.seconds)),
        Cell(str(share.runs)),
        Cell(str(share.landed)),
        Cell(each),
        Cell(_waste(share), Colour.YELLOW),
    ]


def _name(share: UsageShare, by: str) -> str:
    if not by:
        return "all"
    name = sanitize(share.key)
    if not name:
        return _NAMELESS.get(by, "")
    return f"#{name}  {sanitize(share.title)}"[:48].rstrip() if by == "ticket" else name


def _waste(share: UsageShare) -> str:
    if not share.wasted_runs:
        return ""
    return f"{dollars(share.wasted.usd)} in {count(share.wasted_runs, 'run')}"
