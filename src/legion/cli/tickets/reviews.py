"""`legion review`, and the section of a ticket's page about reviews."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import Cell, Colour, Screen, clock, count, sanitize
from legion.cli.base.parameters import ticket_argument
from legion.wire.page_parts import FindingLine, ReviewLine

_COLOURS = {"approve": Colour.GREEN, "changes": Colour.RED, "none": Colour.YELLOW}
_VERDICTS = {"approve": "approved", "changes": "asks for changes", "none": "no verdict", "": "reads it"}
_WEIGHTS = {"blocking": Colour.RED, "concern": Colour.YELLOW}
_ORDER = {weight: place for place, weight in enumerate(_WEIGHTS)}
_SHOWN = 3
"""Reviews, and findings of each, that are shown without --full."""


@command("review", example="legion review 12")
@ticket_argument
def review(call: CommandCall, id: int) -> None:
    """Have an independent reviewer read the change of a ticket, whatever the project's policy is.

    A ticket that is about to land waits for the verdict; a landed ticket stays landed.
    """
    call.report(call.legion().review(id))


def section(reviews: Sequence[ReviewLine], screen: Screen, *, full: bool) -> Iterator[str]:
    """The latest reviews, each with its findings, blocking ones first."""
    if not reviews:
        return
    yield ""
    yield screen.bold("Reviews")
    shown = reviews if full else reviews[-_SHOWN:]
    if len(shown) < len(reviews):
        yield from screen.aside(f"{count(len(reviews) - len(shown), 'earlier review')} not shown: --full")
    for one in shown:
        yield from _review(one, screen, full)


def _review(one: ReviewLine, screen: Screen, full: bool) -> Iterator[str]:
    aside = "" if one.binding else " (optional)"
    text, colour = _VERDICTS.get(one.verdict, sanitize(one.verdict)), _COLOURS.get(one.verdict, Colour.CYAN)
    if one.overruled:
        text, colour = "approved by the rules, against its verdict", Colour.YELLOW
    yield screen.line(
        Cell(f"{sanitize(one.reader)} "),
        Cell(text, colour),
        Cell(f"{aside}  round {one.round}, {one.commit[:9]}, {clock(one.given_at or one.asked_at)}", Colour.DIM),
        indent=2,
    )
    if one.summary:
        yield from screen.paragraph(one.summary, most_lines=None if full else 2)
    if one.complaint:
        yield from screen.paragraph(
            f"its last answer could not be used: {one.complaint}", most_lines=None if full else 3
        )
    findings = sorted(one.findings, key=lambda finding: _ORDER.get(finding.weight, len(_ORDER)))
    for finding in findings if full else findings[:_SHOWN]:
        yield from _finding(finding, screen, full)
    if not full and len(findings) > _SHOWN:
        yield from screen.aside(f"and {len(findings) - _SHOWN} more: --full")
    for note in one.notes:
        yield from screen.note(f"noted: {sanitize(note)}", Colour.DIM, indent=4)


def _finding(finding: FindingLine, screen: Screen, full: bool) -> Iterator[str]:
    where = finding.file if finding.line is None else f"{finding.file}:{finding.line}"
    yield screen.line(
        Cell(f"{sanitize(finding.weight)} ", _WEIGHTS.get(finding.weight, Colour.DIM)),
        Cell(f"{sanitize(where)}  {sanitize(' '.join(finding.text.split()))}"),
        indent=4,
    )
