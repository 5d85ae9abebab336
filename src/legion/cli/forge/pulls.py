"""`legion status pr`, `land pulls` and `try report`: pull requests of tickets, and what people do about them."""

from __future__ import annotations

from typing import Any

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import progress, sanitize
from legion.cli.base.parameters import TICKET
from legion.cli.base.row_command import described_by, filled
from legion.client.text.rows import Column, Columns, Row, listing, row
from legion.client.text.terminal import Colour
from legion.wire.errors import BadInput
from legion.wire.forge import MergePulls, PullLine, Pulls, TriedByHand

_COLOURS = {"green": Colour.GREEN, "red": Colour.RED, "pending": Colour.YELLOW, "none": Colour.DIM}


@command("pr", example="legion status pr\nlegion status pr 12")
@click.argument("ticket", metavar="N", type=TICKET, required=False)
def pr(call: CommandCall, ticket: int | None) -> None:
    """List the pull requests of tickets; with N, bring that of one ticket up to date and show it."""
    if ticket is None:
        found = call.legion().pulls(call.cwd)
    else:
        with progress("Asking the forge"):
            found = call.legion().pull(ticket)
    call.show(found, _rows)
    if not call.json:
        call.notes(found.notes)


_PULL: Columns[PullLine] = (
    Column("ticket", lambda one: str(one.ticket), Colour.BOLD, keeps=True),
    Column("number", lambda one: f"#{one.number}" if one.number else "", Colour.CYAN, keeps=True),
    Column("stage", lambda one: one.stage, keeps=True),
    Column("ci", lambda one: f"CI {one.ci}", lambda one: _COLOURS.get(one.ci, Colour.DIM), keeps=True),
    Column("review", lambda one: one.review),
    Column("merges", lambda one: one.merges or one.note),
    Column("at", lambda one: one.url or one.branch, Colour.DIM),
    Column("title", lambda one: one.title),
)


def _rows(found: Pulls, width: int) -> list[Row]:
    made = listing(_PULL, found.pulls, width)
    text = 'No pull requests; `target = "pr"` in [landing] of legion.toml makes one of each proven change.'
    return made or [row(text)]


def _numbers(text: str, option: str) -> list[int]:
    try:
        return [int(part) for part in text.replace(",", " ").split()]
    except ValueError:
        raise BadInput(f"{option} takes numbers of tickets: {option} 3,5") from None


@described_by(MergePulls)
@command("merge", example="legion land pulls --dry-run\nlegion land pulls --method squash --order 12,14")
@click.option("--order", default="", metavar="N,N", help="Only these tickets, in this order.")
@click.option("--only", default="", metavar="N,N", help="Only these tickets.")
@click.option("--drop", default="", metavar="N,N", help="All but these tickets.")
def merge(call: CommandCall, order: str, only: str, drop: str, **given: Any) -> None:
    """Merge pull requests that are approved and whose checks are green, by the forge's own rules."""
    chosen, dropped = _numbers(only, "--only"), _numbers(drop, "--drop")
    if dropped:
        if order or only:
            raise BadInput("Give --drop or --order or --only, not two of them.")
        there = [one.ticket for one in call.legion().pulls(call.cwd).pulls if one.stage == "open"]
        if unknown := [number for number in dropped if number not in there]:
            raise BadInput(f"Ticket {unknown[0]} has no open pull request here: see `legion status pr`.")
        chosen = [number for number in there if number not in dropped]
        if not chosen:
            raise BadInput("--drop leaves no open pull request: see `legion status pr`.")
    wanted = filled(MergePulls, given, call.cwd, order=_numbers(order, "--order"), only=chosen)
    with progress("Asking the forge"):
        found = call.legion().merge_pulls(wanted)
    call.show(found, lambda found, width: _rows(found, width) if found.pulls else [row("No pull request is open.")])


@command("test", example="legion try report 12\nlegion try report 12 --fail --reason 'The button does nothing.'")
@click.argument("ticket", metavar="N", type=TICKET)
@click.option("--passed", is_flag=True, help="You tried it and it works.")
@click.option("--fail", is_flag=True, help="You tried it and it does not: it goes back to its agent.")
@click.option("--reason", default="", metavar="TEXT", help="What went wrong.")
def test(call: CommandCall, ticket: int, passed: bool, fail: bool, reason: str) -> None:
    """Print how to try a ticket's change by hand, or record what came out."""
    if passed and fail:
        raise BadInput("Give --passed or --fail, not both.")
    result = True if passed else False if fail else None
    found = call.legion().tried(ticket, TriedByHand(passed=result, reason=reason))
    call.answer(found, lambda: [*(sanitize(line) for line in found.commands), sanitize(found.message)])
