"""Receipts, reviews and history of a ticket as rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from legion.client.text.rows import Column, Columns, Row, clean, fit, flow, listing, note, paragraph
from legion.client.text.terminal import Cell, Colour, clock, count, fine_duration
from legion.client.text.tickets import style_of
from legion.wire.history import Events, HistoryLine
from legion.wire.ticket_pages import FindingLine, ReceiptLine, ReviewLine, TicketPage

Shown = TypeVar("Shown")
SHORT = 8
"""Lines of one section that are shown without --full."""


_REVIEWS = 3
"""Reviews, and findings of each, that are shown without --full."""


def last(lines: Sequence[Shown], full: bool, most: int = SHORT) -> Sequence[Shown]:
    return lines if full else lines[-most:]


def earlier(number: int, full: bool, what: str, most: int = SHORT) -> list[Row]:
    hidden = 0 if full else number - most
    return [note(f"{count(hidden, f'earlier {what}')} not shown: --full", indent=2)] if hidden > 0 else []


def tail(text: str, width: int, full: bool) -> list[Row]:
    lines = [line for line in paragraph(text, width, indent=4) if line.text]
    return lines if full else lines[-SHORT:]


def receipt_rows(page: TicketPage, width: int, *, full: bool = True, opened: str | None = None) -> list[Row]:
    """The last one last; one that is red, or was `opened`, with the end of its output."""
    if not page.receipts:
        text = "No check has run for this ticket yet. Its proofs run when its agent has finished."
        return paragraph(text, width, colour=Colour.DIM)
    made = [
        line
        for text in page.not_needed
        for line in paragraph(f"not needed: {text}", width, indent=2, colour=Colour.DIM)
    ]
    if page.merged:
        made += paragraph(
            f"merged by Legion, definition by definition: {page.merged}", width, indent=2, colour=Colour.YELLOW
        )
    made += earlier(len(page.receipts), full, "receipt")
    known = list(enumerate(page.receipts))
    newest = page.receipts[-1]

    def output(one: tuple[int, ReceiptLine]) -> list[Row]:
        number, receipt = one
        blind = f"trusted by {receipt.trusted} although it stays green when the code is broken"
        told = paragraph(blind, width, indent=4, colour=Colour.YELLOW) if receipt.trusted else []
        if opened != str(number) and (opened or receipt is not newest or receipt.verdict == "green"):
            return told
        title = f"the end of the output of {receipt.name} (all of it: {receipt.output})"
        return [*told, *paragraph(title, width, indent=2), *tail(receipt.tail or "(no output)", width, full)]

    return [
        *made,
        *listing(
            _RECEIPT, last(known, full), width, key=lambda one: str(one[0]), below=output, indent=2, complete=True
        ),
    ]


_VERDICT_STATES = {"green": "done", "red": "failed"}


_RECEIPT: Columns[tuple[int, ReceiptLine]] = (
    Column(
        "verdict",
        lambda one: f"{style_of(_VERDICT_STATES.get(one[1].verdict, 'parked')).symbol} {one[1].verdict}",
        lambda one: style_of(_VERDICT_STATES.get(one[1].verdict, "parked")).colour,
        keeps=True,
    ),
    Column("check", lambda one: one[1].name, keeps=True),
    Column("exit", lambda one: "no exit code" if one[1].exit_code is None else f"exit {one[1].exit_code}", Colour.DIM),
    Column("lasted", lambda one: fine_duration(one[1].duration), Colour.DIM),
    Column("without it", lambda one: one[1].without and f"{one[1].without} without the change", Colour.DIM),
    Column("made", lambda one: clock(one[1].made_at), Colour.DIM, least=100),
    Column("on", lambda one: f"on {one[1].commit[:9]}", Colour.DIM),
    Column("machine", lambda one: f"machine {one[1].machine}" if one[1].machine else "", Colour.DIM),
    Column("command", lambda one: one[1].command),
)


def more(number: int, most: int | None, how: str) -> list[Row]:
    return [note(f"and {number - most} more: {how}", indent=2)] if most is not None and number > most else []


_VERDICTS = {
    "approve": ("approved", Colour.GREEN), "changes": ("asks for changes", Colour.YELLOW),
    "none": ("no verdict", Colour.RED), "": ("reads it", Colour.CYAN),
}  # fmt: skip


_WEIGHTS = {"blocking": Colour.RED, "concern": Colour.YELLOW}


_ORDER = {weight: place for place, weight in enumerate(_WEIGHTS)}


def review_rows(page: TicketPage, width: int, *, full: bool = True, ask: str = "") -> list[Row]:
    """The latest reviews, each with its findings, blocking ones first. `ask` is what asks for a review."""
    if not page.reviews:
        text = f"No review yet. An independent agent can read the change: {ask} asks for one."
        return paragraph(text, width, colour=Colour.DIM)
    shown = last(page.reviews, full, _REVIEWS)
    made = earlier(len(page.reviews), full, "review", _REVIEWS)
    return [*made, *(line for one in shown for line in _review(one, width, full))]


def _review(one: ReviewLine, width: int, full: bool) -> list[Row]:
    aside = "" if one.binding else " (optional)"
    text, colour = _VERDICTS.get(one.verdict, (clean(one.verdict), Colour.CYAN))
    if one.overruled:
        text, colour = "approved by the rules, against its verdict", Colour.YELLOW
    when = f"{aside}  round {one.round}, {one.commit[:9]}, {clock(one.given_at or one.asked_at)}"
    title = (Cell(f"  {clean(one.reader)} ", Colour.BOLD), Cell(text, colour), Cell(when, Colour.DIM))
    made = [Row(fit(title, width)), *paragraph(one.summary, width, indent=2, most=None if full else 2)]
    if one.complaint:
        complaint = f"its last answer could not be used: {one.complaint}"
        made += paragraph(complaint, width, indent=2, most=None if full else 3)
    findings = sorted(one.findings, key=lambda finding: _ORDER.get(finding.weight, len(_ORDER)))
    made += [line for finding in findings[: None if full else _REVIEWS] for line in _finding(finding, width)]
    made += more(len(findings), None if full else _REVIEWS, "--full")
    return [*made, *(line for text in one.notes for line in paragraph(f"noted: {text}", width, indent=4))]


def _finding(finding: FindingLine, width: int) -> list[Row]:
    where = finding.file if finding.line is None else f"{finding.file}:{finding.line}"
    weight = Cell(f"    {clean(finding.weight)} ", _WEIGHTS.get(finding.weight, Colour.DIM))
    return flow((weight, Cell(f"{clean(where)}  ", Colour.CYAN), Cell(clean(finding.text))), width, indent=6)


def history_rows(events: Events | None, width: int, *, of_one: bool = True) -> list[Row]:
    """Oldest first. Moments that `rewind` can return to have a key and their name. `of_one`: of one ticket."""
    if events is None:
        return [note("Reading the history.")]
    made = [_history(one, width, of_one) for one in events.lines]
    if events.omitted:
        made.insert(0, note(f"{count(events.omitted, 'older line')} not shown"))
    return made or [note("Nothing has happened yet.")]


def _history(one: HistoryLine, width: int, of_one: bool) -> Row:
    is_run = one.source == "run"
    cells = (
        Cell(f"{clock(one.at)}  ", Colour.DIM),
        Cell("" if of_one else f"{f'#{one.ticket}' if one.ticket else '':<6}"),
        Cell(f"  run {one.run}  ", Colour.DIM) if is_run else Cell(f"{clean(one.kind):<18}  ", Colour.CYAN),
        Cell(f"[{clean(one.rule)}] " if one.rule else "", Colour.YELLOW),
        Cell(f"↶ --to {one.rewind}  " if one.rewind else "", Colour.GREEN),
        Cell(clean(one.words), Colour.DIM if is_run else Colour.NONE),
    )
    return Row(fit(cells, width), key_of(one))


def moment_of(events: Events | None, key: str) -> str:
    """The name of the selected moment for `rewind`; empty where the ticket cannot return to it."""
    one = line_of(events, key)
    return one.rewind if one is not None else ""


def line_of(events: Events | None, key: str) -> HistoryLine | None:
    """The line of the row with this key."""
    lines = events.lines if events is not None else []
    return next((one for one in lines if key_of(one) == key), None)


def key_of(one: HistoryLine) -> str:
    return f"{one.source} {one.run or 0} {one.n}"
