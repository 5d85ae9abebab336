"""`legion retry race`: several attempts of one ticket at once, of which the best proven one lands."""

from __future__ import annotations

import re

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.parameters import TICKET
from legion.client.text.rows import Column, Columns, Row, listing, row
from legion.client.text.terminal import Cell, Colour, count
from legion.client.text.tickets import dollars
from legion.wire.errors import BadInput
from legion.wire.tickets import LaneLine, NewRace, RacePage

_NUMBER = re.compile(r"[Nn]=(\d{1,2})")
_COLOURS = {"won": Colour.GREEN, "finished": Colour.GREEN, "running": Colour.YELLOW}
_EXAMPLE = """\
legion retry race N=3 12
legion retry race --drivers claude,codex 12 13
legion retry race 12"""


@command("race", example=_EXAMPLE)
@click.argument("words", metavar="[N=COUNT] TICKET...", nargs=-1, required=True)
@click.option("--drivers", default="", metavar="A,B", help="One attempt by each of these programs.")
@click.option("--models", default="", metavar="A,B", help="One attempt by each of these models.")
def race(call: CommandCall, words: tuple[str, ...], drivers: str, models: str) -> None:
    """Start several attempts of a ticket at once; the best proven one lands.

    Each attempt is a ticket with its own tree and an equal share of the budget. Proofs decide first, then the size of
    the change, then an independent reader who does not know its author. The others are kept for a look. Without a
    number, programs or models: show the race.
    """
    counts = [found[1] for word in words if (found := _NUMBER.fullmatch(word))]
    numbers = [TICKET.convert(word, None, None) for word in words if not _NUMBER.fullmatch(word)]
    if len(counts) > 1 or not numbers:
        raise BadInput("Name one count and at least one ticket: `legion retry race N=3 12`.")
    wanted = NewRace(count=int(counts[0]) if counts else 0, drivers=_list(drivers), models=_list(models))
    starts = bool(wanted.count or wanted.drivers or wanted.models)
    if starts and wanted.count < 2 and not (wanted.drivers or wanted.models):
        raise BadInput("A race needs at least two attempts: pass N=2 or more.")
    legion = call.legion()
    for number in numbers:
        _show(call, legion.race(number, wanted) if starts else legion.race_page(number))


def _show(call: CommandCall, page: RacePage) -> None:
    call.show(page, _rows)
    call.notes(page.notes)


def _list(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


_LANE: Columns[LaneLine] = (
    Column("ticket", lambda one: f"#{one.ticket}", Colour.BOLD, keeps=True),
    Column("by", lambda one: " ".join(filter(None, (one.driver, one.model))) or "as the settings say", keeps=True),
    Column("standing", lambda one: one.standing, lambda one: _COLOURS.get(one.standing, Colour.DIM), keeps=True),
    Column("state", lambda one: one.state, Colour.DIM),
    Column("tries", lambda one: count(one.attempts, "try", "tries")),
    Column("size", lambda one: "" if one.lines is None else f"{one.lines} lines"),
    Column("cost", lambda one: dollars(one.usd) + ("" if one.budget is None else f" of {dollars(one.budget)}")),
    Column("why", lambda one: one.why, Colour.DIM),
)


def _rows(page: RacePage, width: int) -> list[Row]:
    result = f"won by ticket {page.winner}" if page.winner is not None else "not decided"
    title = row(
        Cell(f"Race {page.race} of ticket {page.origin}", Colour.BOLD),
        f"  {page.title}  ",
        Cell(f"{result}, {dollars(page.usd)} in all", Colour.DIM),
    )
    return [title, *listing(_LANE, page.lanes, width, indent=2)]
