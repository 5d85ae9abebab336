"""`legion retry race`: several attempts of one ticket at once, of which the best proven one lands."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import Cell, Colour, Screen, count, sanitize
from legion.cli.base.parameters import TICKET
from legion.cli.board.status import dollars
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
    call.answer(page, lambda: _page(page, call.screen))
    call.notes(page.notes)


def _list(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _page(page: RacePage, screen: Screen) -> Iterator[str]:
    result = f"won by ticket {page.winner}" if page.winner is not None else "not decided"
    yield screen.line(
        Cell(f"Race {page.race} of ticket {page.origin}", Colour.BOLD),
        Cell(f"  {sanitize(page.title)}  "),
        Cell(f"{result}, {dollars(page.usd)} in all", Colour.DIM),
    )
    yield from screen.table([_row(lane) for lane in page.lanes])


def _row(lane: LaneLine) -> list[Cell]:
    who = " ".join(filter(None, (lane.driver, lane.model))) or "as the settings say"
    size = "" if lane.lines is None else f"{lane.lines} lines"
    share = "" if lane.budget is None else f" of {dollars(lane.budget)}"
    return [
        Cell(f"#{lane.ticket}", Colour.BOLD),
        Cell(sanitize(who)),
        Cell(lane.standing, _COLOURS.get(lane.standing, Colour.DIM)),
        Cell(lane.state, Colour.DIM),
        Cell(count(lane.attempts, "try", "tries")),
        Cell(size),
        Cell(f"{dollars(lane.usd)}{share}"),
        Cell(sanitize(lane.why), Colour.DIM),
    ]
