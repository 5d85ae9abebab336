"""`legion ticket N`: everything about one ticket, on one screen."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import click

from legion.cli.agents import team_section
from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import (
    Cell,
    Colour,
    Screen,
    clock,
    count,
    duration,
    fine_duration,
    numbers,
    sanitize,
    sanitize_lines,
    size,
    thousands,
    width,
)
from legion.cli.base.parameters import ticket_argument
from legion.cli.base.states import state_cell, trusted, verdict_cell
from legion.cli.board.inbox import question_lines
from legion.cli.board.status import about, dollars
from legion.cli.tickets import reviews
from legion.client.text.tickets import doing
from legion.wire.dispatch import TICKET_FIELDS
from legion.wire.page_parts import CommandLine, EnvironmentLine
from legion.wire.text import hidden_warning
from legion.wire.ticket_fields import TicketField
from legion.wire.tickets import ReceiptLine, RunLine, TicketPage, UsageLine

SHORT = 8
"""Lines of one section that are shown without --full."""


@command("ticket", example="legion ticket 12")
@ticket_argument
@click.option("--full", is_flag=True, help="Cut nothing: complete texts, all attempts, the complete history.")
def ticket(call: CommandCall, id: int, full: bool) -> None:
    """Show everything about one ticket: text, state, attempts, receipts, history."""
    page = call.legion().ticket(id)
    call.answer(page, lambda: page_of(page, call.screen, full=full))


def page_of(page: TicketPage, screen: Screen, *, full: bool = False) -> list[str]:
    return [
        *_head(page, screen, full),
        *_questions(page, screen),
        *_texts(page, screen, full),
        *team_section.section(page.crew, screen, full=full),
        *_evidence(page, screen),
        *reviews.section(page.reviews, screen, full=full),
        *_attempts(page, screen, full),
        *_clashes(page, screen),
        *_spent(page, screen),
        *_environment(page.environment, screen, full),
        *_receipts(page, screen, full),
        *_hidden(page, screen),
        *_weakened(page, screen, full),
        *_reversal(page, screen, full),
        *_files(page, screen, full),
        *_history(page, screen, full),
    ]


def _head(page: TicketPage, screen: Screen, full: bool) -> Iterator[str]:
    line = page.ticket
    yield from screen.note(f"#{line.id} {sanitize(line.title)}", Colour.BOLD, indent=0)
    # A reason or an activity that does not fit on the line of the state is shown complete below it.
    state, detail, below = state_cell(screen, line.state), about(line), ""
    if line.doing or not _fits(screen, state, detail):
        detail, below = about(replace(line, reason="")), line.reason
    if line.doing and not _fits(screen, state, detail):
        detail = about(replace(line, reason="", doing="", doing_since=None))
        below = "; ".join(text for text in (doing(line), line.reason) if text)
    yield screen.line(state, Cell(f"  {detail}" if detail else ""))
    if below:
        yield from screen.paragraph(below, most_lines=None if full else 3)
    facts = [
        *((field.rule.label, _field_text(page, field)) for field in TICKET_FIELDS.values() if field.rule.label),
        ("kind", "checkpoint" if line.checkpoint else ""),
        ("agent", sanitize(" ".join(word for word in (page.driver, page.command, page.model) if word))),
        ("machine", sanitize(f"{page.machine}: {page.placed_because}") if page.placed_because else ""),
        ("worktree", sanitize(page.worktree or "")),
        ("change", f"{page.change[:9]} on {page.base[:9]}" if page.change and page.base else ""),
        ("landed", page.landed[:9] if page.landed else ""),
        ("undoes", f"ticket {page.ticket.undoes}" if page.ticket.undoes else ""),
        ("undone by", f"ticket {numbers(page.undone_by)}" if page.undone_by else ""),
        ("parked until", _until(page.parked_until) if page.parked_until and not page.questions else ""),
        ("model access", sanitize(page.access)),
        ("conversation", sanitize(page.conversation)),
        ("copied from", sanitize(page.forked_from)),
        ("may ask", "you for permissions" if page.ask else ""),
        ("budget", _budget(page)),
    ]
    yield from screen.table([[Cell(name, Colour.DIM), Cell(value)] for name, value in facts if value], uncut=True)


def _field_text(page: TicketPage, field: TicketField) -> str:
    """The value of a ticket's field on one line; empty for its default."""
    value = getattr(page if hasattr(page, field.name) else page.ticket, field.name)
    if value == field.default:
        return ""
    if isinstance(value, list):
        return sanitize((" ; " if field.name == "prove" else ", ").join(map(str, value)))
    return sanitize(str(value))


def _fits(screen: Screen, state: Cell, detail: str) -> bool:
    return width(f"{state.text}  {detail}") <= screen.width


def _budget(page: TicketPage) -> str:
    if page.budget is None:
        return ""
    return f"{dollars(page.budget)}, of which {dollars(page.usage.usd if page.usage else 0)} is spent"


def _until(moment: float) -> str:
    left = moment - time.time()
    return f"{clock(moment)}, in {duration(left)}; it resumes by itself" if left > 0 else f"{clock(moment)}, now"


def _clashes(page: TicketPage, screen: Screen) -> Iterator[str]:
    """Predicted conflicts with the changes of other open tickets."""
    if not page.clashes:
        return
    yield ""
    yield screen.bold("Predicted conflicts")
    for one in page.clashes:
        other = f"ticket {one.ticket}" if one.ticket else "what landed"
        here = f" line {one.first}" if one.first == one.last else f" lines {one.first}-{one.last}"
        place = sanitize(one.path) + (here if one.first else "")
        yield from screen.note(f"{place}  with {other}", Colour.YELLOW)


def _questions(page: TicketPage, screen: Screen) -> Iterator[str]:
    for question in page.questions:
        yield ""
        yield from question_lines(question, screen)


def _spent(page: TicketPage, screen: Screen) -> Iterator[str]:
    """The cost of each run, and of all together."""
    if page.usage is None:
        return
    yield from _section(screen, "Spent")
    rows = [(f"run {run.id}", run.usage) for run in page.runs if run.usage is not None]
    rows += [("together", page.usage)] if len(rows) > 1 else []
    yield from screen.table([[Cell(name, Colour.DIM), *_usage_cells(usage)] for name, usage in rows])
    if page.usage.unpriced:
        without = count(page.usage.unpriced, "request")
        yield from screen.aside(
            f"{without} without a known price, not in the sum; add the price to prices.toml next to your settings"
        )


def _usage_cells(usage: UsageLine) -> list[Cell]:
    refused = f" ({usage.failed} failed)" if usage.failed else ""
    return [
        Cell(dollars(usage.usd), Colour.BOLD),
        Cell(f"{count(usage.requests, 'request')}{refused}"),
        Cell(f"{thousands(usage.input)} in"),
        Cell(f"{thousands(usage.output)} out"),
        Cell(f"{thousands(usage.cache_read)} from cache"),
        Cell(f"{thousands(usage.cache_write)} to cache"),
    ]


def _section(screen: Screen, title: str) -> Iterator[str]:
    yield ""
    yield screen.bold(title)


def _texts(page: TicketPage, screen: Screen, full: bool) -> Iterator[str]:
    texts = [
        ("Text", page.text),
        ("Context", page.context),
        ("Criteria", "" if page.evidence else page.criteria),
        ("Plan", page.plan),
        (f"Plan of its agent, {page.planning}", page.proposal),
        ("Feedback", page.feedback),
        ("Its agent's last status", page.progress),
        ("Smoke tests that its agent names", page.smoke_tests),
    ]
    for title, text in texts:
        if text.strip():
            yield from _section(screen, title)
            yield from screen.paragraph(text, most_lines=None if full else SHORT)


def _attempts(page: TicketPage, screen: Screen, full: bool) -> Iterator[str]:
    if not page.runs:
        return
    yield from _section(screen, "Attempts")
    shown = page.runs if full else page.runs[-SHORT:]
    if len(shown) < len(page.runs):
        yield from screen.aside(f"{count(len(page.runs) - len(shown), 'earlier run')} not shown: --full")
    yield from screen.table([_run_row(run, page.access) for run in shown], uncut=True)


def _run_row(run: RunLine, usual: str) -> list[Cell]:
    """`usual` is how the builder reaches its model; another way is shown."""
    outcome = run.outcome or "at work"
    colour = {"finished": Colour.GREEN, "at work": Colour.CYAN}.get(outcome, Colour.YELLOW)
    lasted = fine_duration(run.ended_at - run.started_at) if run.ended_at is not None else ""
    again = f" (start {run.generation})" if run.generation > 1 else ""
    role = f", {sanitize(run.role)}" if run.role else ""
    other = f" ({sanitize(run.access)})" if run.access not in ("", usual) else ""
    return [
        Cell(f"attempt {run.attempt}{again}{role}{other}"),
        Cell(f"run {run.id}", Colour.DIM),
        Cell(clock(run.started_at), Colour.DIM),
        Cell(lasted),
        Cell(sanitize(outcome).replace("_", " "), colour),
        Cell(sanitize(run.detail)),
    ]


def _environment(place: EnvironmentLine | None, screen: Screen, full: bool) -> Iterator[str]:
    if place is None or not (place.slot is not None or place.worktree_bytes or place.up or place.down or place.notes):
        return
    least = "" if place.all_counted else "at least "
    limit = f" of {size(place.limit_bytes)} allowed" if place.limit_bytes else ""
    facts = [
        ("slot", "" if place.slot is None else str(place.slot)),
        ("ports", f"{place.ports[0]}-{place.ports[-1]}" if place.ports else ""),
        ("listening", numbers(place.listening)),
        ("temp folder", f"{size(place.temp_bytes)} in {sanitize(place.temp)}" if place.temp else ""),
        ("disk", f"{least}{size(place.worktree_bytes + place.temp_bytes)}{limit}"),
    ]
    yield from _section(screen, "Environment")
    yield from screen.table([[Cell(name, Colour.DIM), Cell(value)] for name, value in facts if value])
    for name, ran in (("up", place.up), ("down", place.down)):
        if ran is not None:
            yield from _command(name, ran, screen, full)
    for note in place.notes:
        yield from screen.note(sanitize(note), Colour.YELLOW)


def _command(name: str, ran: CommandLine, screen: Screen, full: bool) -> Iterator[str]:
    colour = Colour.GREEN if ran.ok else Colour.RED
    yield from screen.note(f"{name}: {sanitize(ran.how)}  {sanitize(ran.command)}", colour)
    if full or not ran.ok:
        lines = [line for line in sanitize_lines(ran.tail) if line.strip()]
        for line in lines if full else lines[-SHORT:]:
            yield screen.line(Cell(line), indent=4)


def _receipts(page: TicketPage, screen: Screen, full: bool) -> Iterator[str]:
    if not page.receipts:
        return
    yield from _section(screen, "Receipts")
    for sentence in page.not_needed:
        yield from screen.aside(f"not needed: {sanitize(sentence)}")
    shown = page.receipts if full else page.receipts[-SHORT:]
    if len(shown) < len(page.receipts):
        yield from screen.aside(f"{count(len(page.receipts) - len(shown), 'earlier receipt')} not shown: --full")
    yield from screen.table([_receipt_row(receipt, screen) for receipt in shown], uncut=True)
    last = page.receipts[-1]
    if last.verdict != "green" and last.tail.strip():
        yield from screen.paragraph(
            f"the end of the output of {sanitize(last.name)} (all of it: {sanitize(last.output)})"
        )
        lines = [line for line in sanitize_lines(last.tail) if line.strip()]
        for line in lines if full else lines[-SHORT:]:
            yield screen.line(Cell(line), indent=4)


def _receipt_row(receipt: ReceiptLine, screen: Screen) -> list[Cell]:
    code = "no exit code" if receipt.exit_code is None else f"exit {receipt.exit_code}"
    return [
        verdict_cell(screen, sanitize(receipt.verdict)),
        Cell(sanitize(receipt.name)),
        Cell(sanitize(receipt.command)),
        Cell(code, Colour.DIM),
        Cell(fine_duration(receipt.duration), Colour.DIM),
        Cell(f"on {receipt.commit[:9]}{_at(receipt)}", Colour.DIM),
    ]


def _at(receipt: ReceiptLine) -> str:
    machine = f", machine {sanitize(receipt.machine)}" if receipt.machine else ""
    return f"{machine}{f', {trusted(receipt.trusted)}' if receipt.trusted else ''}"


_BACKING = {
    "proven": Colour.GREEN,
    "green": Colour.GREEN,
    "red": Colour.RED,
    "read": Colour.CYAN,
    "claimed": Colour.YELLOW,
}


def _evidence(page: TicketPage, screen: Screen) -> Iterator[str]:
    """Each criterion with the command that proves it, or that it is only claimed."""
    if not page.evidence:
        return
    yield from _section(screen, "Criteria")
    for one in page.evidence:
        backing = Cell(f"{sanitize(one.backing):<8}", _BACKING.get(one.backing, Colour.DIM))
        first, *rest = screen.note(sanitize(one.criterion), indent=10) or [""]
        yield f"  {screen.paint(backing.text, backing.colour)}{first[10:]}"
        yield from rest
        where = f" on {one.commit[:9]}" if one.commit else ""
        idle = ", which also passes without the change" if one.idle else ""
        own = ", which the change itself added" if one.own else ""
        by = f"by {sanitize(one.by)}{where}{idle}{own}" if one.by else _NOTHING
        yield from screen.note(by, Colour.DIM, indent=10)


_NOTHING = "no proof; bind one with --prove 'CRITERION :: COMMAND'"


def _hidden(page: TicketPage, screen: Screen) -> Iterator[str]:
    if page.hidden_characters:
        yield from _section(screen, "Hidden characters")
        yield from screen.note(sanitize(hidden_warning(page.hidden_characters)), Colour.YELLOW)
        yield from screen.aside(f"`legion diff {page.ticket.id}` marks them.")


def _weakened(page: TicketPage, screen: Screen, full: bool) -> Iterator[str]:
    if not page.weakened:
        return
    yield from _section(screen, "Tests look weaker")
    shown = page.weakened if full else page.weakened[:SHORT]
    for one in shown:
        where = sanitize(one.path) if one.line is None else f"{sanitize(one.path)}:{one.line}"
        sign = Cell(f"{sanitize(one.sign)}  ", Colour.YELLOW)
        yield screen.line(sign, Cell(f"{where}  {sanitize(one.words)}"), indent=2)
    if len(shown) < len(page.weakened):
        yield from screen.aside(f"and {len(page.weakened) - len(shown)} more: --full")


def _reversal(page: TicketPage, screen: Screen, full: bool) -> Iterator[str]:
    """Parts of the change that no check misses when they are reverted."""
    found = page.reversal
    if found is None:
        return
    yield from _section(screen, "Proof by reversal")
    for name in found.idle:
        yield screen.line(Cell("passes without the change  ", Colour.YELLOW), Cell(sanitize(name)), indent=2)
    shown = found.unproven if full else found.unproven[:SHORT]
    for one in shown:
        where = f"{sanitize(one.path)}:{one.line}, {count(one.lines, 'line')}"
        yield screen.line(Cell("unproven  ", Colour.YELLOW), Cell(where), indent=2)
    if len(shown) < len(found.unproven):
        yield from screen.aside(f"and {len(found.unproven) - len(shown)} more: --full")
    missed = found.tried - len(found.unproven)
    left = f"; {found.left} more were not tried for lack of time" if found.left else ""
    yield from screen.aside(f"checks cover {missed} of {count(found.tried, 'piece')} of the change{left}")


def _files(page: TicketPage, screen: Screen, full: bool) -> Iterator[str]:
    if not page.changed_files:
        return
    yield from _section(screen, f"Changes in {count(len(page.changed_files), 'file')}")
    shown = page.changed_files if full else page.changed_files[:SHORT]
    for name in shown:
        yield from screen.note(sanitize(name))
    if len(shown) < len(page.changed_files):
        yield from screen.aside(f"and {len(page.changed_files) - len(shown)} more: legion diff {page.ticket.id}")


def _history(page: TicketPage, screen: Screen, full: bool) -> Iterator[str]:
    if not page.history:
        return
    yield from _section(screen, "History")
    shown = page.history if full else page.history[-SHORT:]
    if len(shown) < len(page.history):
        yield from screen.aside(f"{count(len(page.history) - len(shown), 'earlier event')} not shown: --full")
    yield from screen.table(
        [[Cell(clock(event.at), Colour.DIM), Cell(sanitize(event.words))] for event in shown], uncut=full
    )
