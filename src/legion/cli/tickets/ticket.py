"""`legion ticket N`: everything about one ticket; `legion diff` and `legion review`."""

from __future__ import annotations

import sys
import time

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import Colour, Screen, reveal_lines, sanitize
from legion.cli.base.parameters import ticket_argument
from legion.client.text.terminal import duration
from legion.client.text.ticket_page import page_rows
from legion.wire.text import hidden_warning
from legion.wire.ticket_pages import Diff


@command("ticket", example="legion ticket 12")
@ticket_argument
@click.option("--full", is_flag=True, help="Cut nothing: complete texts, all attempts, the complete history.")
def ticket(call: CommandCall, id: int, full: bool) -> None:
    """Show everything about one ticket: text, state, attempts, receipts, history."""
    call.show(call.legion().ticket(id), lambda page, width: page_rows(page, width, full=full))


@command("review", example="legion review 12")
@ticket_argument
def review(call: CommandCall, id: int) -> None:
    """Have an independent reviewer read the change of a ticket, whatever the project's policy is.

    A ticket that is about to land waits for the verdict; a landed ticket stays landed.
    """
    call.report(call.legion().review(id))


_COLOURS = (
    ("+++", Colour.BOLD),
    ("---", Colour.BOLD),
    ("diff ", Colour.BOLD),
    ("@@", Colour.CYAN),
    ("+", Colour.GREEN),
    ("-", Colour.RED),
)


@command("diff", example="legion diff 12 | git apply\nlegion diff 12 --since 34:7")
@ticket_argument
@click.option(
    "--since", default="", metavar="MOMENT", help="What changed after this moment, as `legion status events` names it."
)
def diff(call: CommandCall, id: int, since: str) -> None:
    """Print a ticket's change, also while its agent is working."""
    change = call.legion().diff(id, since)
    if not call.json and not change.text:
        call.say("No changes so far." if change.live else "The ticket has no change.")
        return
    if call.json or call.screen.tty:
        call.answer(change, lambda: _coloured(change, call.screen))
    else:
        sys.stdout.write(change.text)
    if change.hidden_characters and not call.json:
        call.say(sanitize(hidden_warning(change.hidden_characters)))
    if change.live and not call.json:
        call.say(f"The agent is still working; this is its tree {_as_of(change)}.")


def _as_of(change: Diff) -> str:
    if change.as_of is None:
        return "as of now"
    return f"as it arrived from its machine {duration(max(0.0, time.time() - change.as_of))} ago"


def _coloured(change: Diff, screen: Screen) -> list[str]:
    lines = reveal_lines(change.text.removesuffix("\n"))
    return [
        screen.paint(line, next((c for start, c in _COLOURS if line.startswith(start)), Colour.NONE)) for line in lines
    ]
