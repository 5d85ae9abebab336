"""`legion edit`, `retry` and `retry race`: a ticket's fields before it starts or is tried again, also several times."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.parameters import TICKET, TICKETS, ticket_argument
from legion.cli.base.texts import read_text
from legion.client.legion import Legion
from legion.client.text.rows import Column, Columns, Row, listing, row
from legion.client.text.terminal import Cell, Colour, count
from legion.client.text.tickets import dollars
from legion.wire.dispatch import TICKET_FIELDS
from legion.wire.errors import BadInput
from legion.wire.mail import MessageText
from legion.wire.text import names_a_ticket
from legion.wire.tickets import Acted, Action, EditTicket, LaneLine, NewRace, RacePage

_TEXTS = ("title", "text", "context", "criteria", "plan")
_GATES = ("auto", "person", "risk", "project")


def _edit_options(function: Callable[..., None]) -> Callable[..., None]:
    """One option for each field that can be changed."""
    short = {name: TICKET_FIELDS[name].rule.short for name in _TEXTS}
    options = [
        *(click.option(*filter(None, (short[name], f"--{name}")), name, help=_help(name)) for name in _TEXTS),
        click.option(
            "-a", "--after", "after", type=TICKETS, metavar="N,N", help="Tickets that must land before it; none: ''."
        ),
        click.option("--files", "files", multiple=True, metavar="GLOB", help=TICKET_FIELDS["files"].rule.help),
        click.option("--priority", "priority", type=int, metavar="N", help="Higher starts and lands first."),
        click.option(
            "--retire", "retire", metavar="WHY", help="Run the proofs of a landed ticket no more; '': run them."
        ),
        click.option("--alone/--together", "alone", default=None, help=TICKET_FIELDS["alone"].rule.help),
        click.option("--gate", "gate", type=click.Choice(_GATES), help="Whether its change waits for `legion land`."),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def _help(name: str) -> str:
    return f"Its new {name}; - reads it from stdin." if name != "title" else "Its new title."


def _wanted(options: dict[str, Any]) -> EditTicket | None:
    """None where no option was given."""
    given = {name: value for name, value in options.items() if value not in (None, ())}
    if not given:
        return None
    for name in _TEXTS:
        if name in given:
            given[name] = read_text(given[name], f"--{name}")
    if "files" in given:
        given["files"] = [one for one in given["files"] if one]
    if given.get("gate") == "project":
        given["gate"] = ""
    return EditTicket(**given)


@command("edit", example="legion edit 12 --priority 5\nlegion edit 12 -k 'make test passes' -a 9,10")
@ticket_argument
@_edit_options
def edit(call: CommandCall, id: int, **options: Any) -> None:
    """Change a ticket before it starts. Priority, gate and --alone can change at any time.

    An ended ticket can be edited, too: the change counts when it is tried again.
    """
    wanted = _wanted(options)
    if wanted is None:
        raise BadInput(f"Name what to change: `legion edit {id} --priority 5`; `legion edit --help` lists the options.")
    call.report(call.legion().edit(id, wanted))


@command("retry", example="legion retry 12 'Keep the old API working.'\nlegion retry 12 13 -k 'make test passes'")
@click.argument("words", metavar="N... [TEXT]", nargs=-1, required=True)
@click.option("--feedback", "--guidance", default="", metavar="TEXT", help="The same as TEXT; - reads it from stdin.")
@click.option("--stuck", is_flag=True, help="Get it moving whatever it is stuck in, also an agent at work.")
@click.option("--one", is_flag=True, help="One ticket: a second word is TEXT, also if it is a number.")
@_edit_options
def retry(call: CommandCall, words: tuple[str, ...], feedback: str, stuck: bool, one: bool, **options: Any) -> None:
    """Give tickets another attempt, with a text for their agents: what they should do differently.

    A failed or stopped ticket starts again with a fresh count of attempts, and with other texts if you like. A change
    that is checked, reviewed, landing or waiting for you goes back to its agent, with the reviewers' findings.
    """
    ids, text = _numbers_and_text(words, one=one)
    edit = _wanted(options)
    if text and feedback:
        raise BadInput("Give TEXT or --feedback, not both.")
    if stuck and edit is not None:
        raise BadInput("--stuck changes no texts: leave it out, or use `legion edit` first.")
    action = Action(feedback=read_text(text, "TEXT") or read_text(feedback, "--feedback"), edit=edit)
    call.report_each(ids, lambda id: _another_attempt(call.legion(), id, action, stuck=stuck))


def _numbers_and_text(words: tuple[str, ...], *, one: bool) -> tuple[list[int], str]:
    *before, last = words
    if not before or (names_a_ticket(last.removeprefix("#")) and not one):
        return [TICKET.convert(word, None, None) for word in words], ""
    return [TICKET.convert(word, None, None) for word in before], last


def _another_attempt(legion: Legion, id: int, action: Action, *, stuck: bool) -> Acted:
    offers = legion.ticket(id).ticket.offers
    if stuck and "retry" not in offers:
        unblocked = _unblock(legion, id, action.feedback)
        if unblocked is not None:
            return unblocked
        offers = legion.ticket(id).ticket.offers
    sent_back = action.edit is None and "retry" not in offers and "bounce" in offers
    return legion.bounce(id, action) if sent_back else legion.retry(id, action)


def _unblock(legion: Legion, id: int, text: str) -> Acted | None:
    """Get a ticket moving where no attempt of it has ended; None where it needs another one."""
    page = legion.ticket(id)
    match page.ticket.state:
        case "working":
            wanted = MessageText(text=text or "Continue; if something blocks you, say what.")
            return Acted(tickets=[id], message=legion.interrupt(id, wanted).message)
        case "parked" if not text:
            return legion.resume_ticket(id)
        case "parked" if page.change is None:
            # Nothing can be sent back yet: it starts again where it stopped, with the text.
            legion.stop(id, Action())
    return None


_NUMBER = re.compile(r"[Nn]=(\d{1,2})")
_COLOURS = {"won": Colour.GREEN, "finished": Colour.GREEN, "running": Colour.YELLOW}
_EXAMPLE = """\
legion retry race N=3 12
legion retry race --drivers claude,codex 12 13
legion retry race N=3 --combine 12
legion retry race 12"""


@command("race", example=_EXAMPLE)
@click.argument("words", metavar="[N=COUNT] TICKET...", nargs=-1, required=True)
@click.option("--drivers", default="", metavar="A,B", help="One attempt by each of these programs.")
@click.option("--models", default="", metavar="A,B", help="One attempt by each of these models.")
@click.option("--combine", is_flag=True, help="One attempt more, from the best parts of all; it must pass every proof.")
def race(call: CommandCall, words: tuple[str, ...], drivers: str, models: str, combine: bool) -> None:
    """Start several attempts of a ticket at once; the best proven one lands.

    Each attempt is a ticket with its own tree and an equal share of the budget. Proofs decide first, then the size of
    the change, then an independent reader who does not know its author. The others are kept for a look. Without a
    number, programs or models: show the race.
    """
    counts = [found[1] for word in words if (found := _NUMBER.fullmatch(word))]
    numbers = [TICKET.convert(word, None, None) for word in words if not _NUMBER.fullmatch(word)]
    if len(counts) > 1 or not numbers:
        raise BadInput("Name one count and at least one ticket: `legion retry race N=3 12`.")
    many = int(counts[0]) if counts else 0
    wanted = NewRace(count=many, drivers=_list(drivers), models=_list(models), combine=combine)
    starts = bool(wanted.count or wanted.drivers or wanted.models)
    if starts and wanted.count < 2 and not (wanted.drivers or wanted.models):
        raise BadInput("A race needs at least two attempts: pass N=2 or more.")
    if combine and not starts:
        raise BadInput("--combine is for a new race: pass N=3, --drivers A,B or --models A,B, too.")
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
