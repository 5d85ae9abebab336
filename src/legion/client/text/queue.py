"""The merge queue as rows: what is tested, what waits, what was sent back, what landed, and the log of it."""

from __future__ import annotations

from collections.abc import Sequence

from legion.client.text.board import line
from legion.client.text.rows import BLANK, Row, clean, fit, head, note, paragraph
from legion.client.text.terminal import Cell, Colour, clock
from legion.client.text.tickets import about, style_of
from legion.wire.board import Status
from legion.wire.history import Events, HistoryLine
from legion.wire.tickets import TicketLine

_WAITS = "in the merge queue"
_LANDED, _LOG = 12, 60
_KINDS = ("landing.", "target.", "check.", "person.")


def queue_rows(status: Status | None, recent: Events | None, width: int) -> list[Row]:
    if status is None:
        return [note("Reading the queue.")]
    landing = [one for one in status.tickets if one.state == "landing"]
    tested = [one for one in landing if not one.doing.startswith(_WAITS)]
    waiting = sorted((one for one in landing if one.doing.startswith(_WAITS)), key=_place)
    back = [one for one in status.tickets if one.state == "queued" and one.attempt > 0 and one.reason]
    landed = sorted((one for one in status.tickets if one.state == "done"), key=lambda one: -one.moved_at)[:_LANDED]
    made = [*_target(status, width)]
    for title, tickets, nothing in (
        ("Tested now", tested, "Nothing is tested now."),
        ("Waiting", waiting, ""),
        ("Sent back", back, ""),
        ("Landed", landed, ""),
    ):
        if tickets or nothing:
            made += [BLANK, head(f"{title} {len(tickets) or ''}".rstrip())]
            made += [_ticket(one, width) for one in tickets] or [note(nothing, indent=2)]
    log = [one for one in recent.lines if one.kind.startswith(_KINDS)][-_LOG:] if recent is not None else []
    if log:
        made += [BLANK, head("What happened, newest first"), *(_event(one, width) for one in reversed(log))]
    return made


def _target(status: Status, width: int) -> list[Row]:
    project = status.project
    if project is None:
        return [note("The queues of all projects.")]
    colours = {"green": Colour.GREEN, "red": Colour.RED}
    made = [
        Row(
            fit(
                (
                    Cell(f"{clean(project.branch)} ", Colour.BOLD),
                    Cell(f"at {project.target[:9]}  "),
                    Cell(f"checks {clean(project.baseline)}", colours.get(project.baseline, Colour.DIM)),
                    Cell(f"  {project.ahead} landed commits to collect" if project.ahead else "", Colour.GREEN),
                ),
                width,
            )
        )
    ]
    for text in project.notes:
        made += paragraph(text, width, indent=2, colour=Colour.YELLOW)
    return made


def _place(ticket: TicketLine) -> int:
    words = ticket.doing.partition("place ")[2].split()
    return int(words[0]) if words and words[0].isdigit() else 0


def _ticket(ticket: TicketLine, width: int) -> Row:
    if ticket.state != "queued":
        return line(ticket, width, before="  ")
    style = style_of("failed")
    cells = (
        Cell(f"  {style.symbol} ", style.colour),
        Cell(f"#{ticket.id} ", Colour.BOLD),
        Cell(f"{clean(ticket.title)}  "),
        Cell(about(ticket), Colour.DIM),
    )
    return Row(fit(cells, width), str(ticket.id))


def _event(one: HistoryLine, width: int) -> Row:
    cells = (
        Cell(f"  {clock(one.at)}  ", Colour.DIM),
        Cell(f"{clean(one.kind):<18} ", Colour.CYAN),
        Cell(f"#{one.ticket}  " if one.ticket else ""),
        Cell(f"[{clean(one.rule)}] " if one.rule else "", Colour.YELLOW),
        Cell(clean(one.words)),
    )
    return Row(fit(cells, width))


def landed_ticket(tickets: Sequence[TicketLine], key: str) -> TicketLine | None:
    """The ticket of a row, where it landed a change that can be reverted."""
    landed = (one for one in tickets if one.state == "done" and not one.checkpoint)
    return next((one for one in landed if str(one.id) == key), None)
