"""A ticket's page as rows: head, texts, team, evidence, reviews, attempts, cost, receipts, files, history.

`legion ticket` prints all sections, cut short without --full; the terminal UI draws them on its tabs.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from legion.client.text.catalog import crew_rows
from legion.client.text.proofs import SHORT, earlier, last, more, receipt_rows, review_rows, tail
from legion.client.text.questions import question_rows
from legion.client.text.rows import BLANK, Column, Columns, Row, clean, facts, flow, head, listing, note, paragraph, row
from legion.client.text.terminal import (
    Cell,
    Colour,
    clock,
    count,
    duration,
    fine_duration,
    numbers,
    size,
    thousands,
    wrap,
)
from legion.client.text.tickets import about, cost, dollars, style_of
from legion.wire.dispatch import TICKET_FIELDS
from legion.wire.text import hidden_warning
from legion.wire.ticket_fields import TicketField
from legion.wire.ticket_pages import CommandLine, TicketPage
from legion.wire.tickets import EventLine, RunLine, TicketLine, UsageLine

_TAIL = 12


class _Commands(dict[str, str]):
    """The commands that do to a ticket what keys of the terminal UI do."""

    def __init__(self, ticket: TicketLine) -> None:
        id = ticket.id
        super().__init__({name: f"`legion {name} {id}`" for name in ("land", "drop", "undo", "interrupt", "stop")})
        self["retry"] = f"`legion {'resume' if ticket.state == 'parked' else 'retry'} {id}`"
        self |= {"inbox": "`legion inbox`", "message": f"`legion tell {id} TEXT`"}


def page_rows(page: TicketPage, width: int, *, full: bool) -> list[Row]:
    """Everything about one ticket, as `legion ticket` prints it."""
    asked = [made for one in page.questions for made in (BLANK, *question_rows(one, width, time.time()))]
    texts, work = _texts(page, width, full=full), _work(page, width, full=full)
    return [
        *head_rows(page.ticket, width),
        *paragraph(_next_step(page, _Commands(page.ticket)), width, indent=2, colour=Colour.YELLOW),
        *_facts(page, width),
        *asked,
        *texts,
        *_titled("Reviews", review_rows(page, width, full=full) if page.reviews else []),
        *work,
        *_titled("Receipts", receipt_rows(page, width, full=full) if page.receipts else []),
        *_warnings(page, width, full=full),
        *_titled("History", listing(_EVENT, last(page.history, full), width, indent=2)),
    ]


def about_rows(page: TicketPage, width: int) -> list[Row]:
    """Complete, without what has a tab of its own."""
    known = (_facts(page, width), _texts(page, width, full=True), _work(page, width, full=True))
    return [*(made for part in known for made in part), *_warnings(page, width, full=True)]


def head_rows(ticket: TicketLine, width: int, doing: str = "") -> list[Row]:
    """Title, state and what it is doing, on as many lines as that takes."""
    style = style_of(ticket.state)
    title = flow((Cell(f"#{ticket.id} {clean(ticket.title)}", Colour.BOLD),), width)
    state = Cell(f"{style.symbol} {clean(ticket.state)}", style.colour)
    return [*title, *flow((state, Cell(f"  {doing or about(ticket)}")), width, indent=2)]


def next_rows(page: TicketPage, keys: Mapping[str, str], available: int) -> list[Row]:
    """What a person can do about this ticket now, by `keys`: the keys or commands that do it."""
    return flow((Cell(_next_step(page, keys), Colour.YELLOW),), available)


def _next_step(page: TicketPage, keys: Mapping[str, str]) -> str:
    ticket = page.ticket
    if any("land" in one.choices for one in page.questions):
        return f"It waits for you: {keys['land']} lands it, {keys['inbox']} opens the inbox for other answers."
    if page.questions:
        return f"It waits for your answer: {keys['inbox']} opens the inbox."
    match ticket.state:
        case "failed":
            return f"It failed: {keys['retry']} tries again with your feedback; {keys['drop']} removes it."
        case "stopped":
            return f"It is stopped: {keys['retry']} continues with the work that it has; {keys['drop']} removes it."
        case "parked":
            return f"It is parked: {clean(ticket.doing or ticket.reason)}; {keys['retry']} resumes it now."
        case "done":
            return f"It landed. {keys['undo']} reverts it by a new ticket."
        case "working":
            return _of_agent(ticket, keys)
        case "queued" if ticket.held_up_by:
            return f"It waits for tickets that failed: retry #{ticket.held_up_by[0]}, or stop this one."
        case _:
            return "Nothing to do: it continues by itself."


def _of_agent(ticket: TicketLine, keys: Mapping[str, str]) -> str:
    """The keys that reach its agent, where its driver can do that."""
    known = (("tell", "message", "sends its agent a line"), ("interrupt", "interrupt", "interrupts it"))
    parts = [f"{keys[key]} {text}" for operation, key, text in known if operation in ticket.offers and key in keys]
    return f"{', '.join([*parts, keys['stop'] + ' stops it'])}."


def _titled(title: str, rows: Sequence[Row]) -> list[Row]:
    return [BLANK, head(title), *rows] if rows else []


def _facts(page: TicketPage, width: int) -> list[Row]:
    line = page.ticket
    spent = f"{dollars(page.usage.usd if page.usage else 0)} is spent"
    known = [
        *((field.rule.label, _field_text(page, field)) for field in TICKET_FIELDS.values() if field.rule.label),
        ("kind", "checkpoint" if line.checkpoint else ""),
        ("agent", " ".join(word for word in (page.driver, page.command, page.model) if word)),
        ("machine", f"{page.machine}: {page.placed_because}" if page.placed_because else ""),
        ("worktree", page.worktree or ""),
        ("change", f"{page.change[:9]} on {page.base[:9]}" if page.change and page.base else ""),
        ("landed", page.landed[:9] if page.landed else ""),
        ("undoes", f"ticket {line.undoes}" if line.undoes else ""),
        ("proofs", f"no longer run for later changes: {page.retired}" if page.retired else ""),
        ("undone by", f"ticket {numbers(page.undone_by)}" if page.undone_by else ""),
        ("parked until", _until(page.parked_until) if page.parked_until and not page.questions else ""),
        ("model access", page.access),
        ("conversation", page.conversation),
        ("copied from", page.forked_from),
        ("may ask", "you for permissions" if page.ask else ""),
        ("budget", f"{dollars(page.budget)}, of which {spent}" if page.budget is not None else ""),
    ]
    return facts(known, width, indent=2)


def _field_text(page: TicketPage, field: TicketField) -> str:
    """The value of a ticket's field on one line; empty for its default."""
    value = getattr(page if hasattr(page, field.name) else page.ticket, field.name)
    if value == field.default:
        return ""
    if isinstance(value, list):
        return (" ; " if field.name == "prove" else ", ").join(map(str, value))
    return str(value)


def _until(moment: float) -> str:
    left = moment - time.time()
    return f"{clock(moment)}, in {duration(left)}; it resumes by itself" if left > 0 else f"{clock(moment)}, now"


def _texts(page: TicketPage, width: int, *, full: bool) -> list[Row]:
    """What is asked for, who works on it, and what proves it."""
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
    made: list[Row] = []
    for title, text in texts:
        most = None if full else SHORT
        made += _titled(title, paragraph(text, width, indent=2, most=most, rest="(cut; --full shows all of it)"))
    return [*made, *crew_rows(page.crew, width, full=full), *_titled("Criteria", _evidence(page, width))]


_BACKING = {
    "proven": Colour.GREEN, "green": Colour.GREEN, "red": Colour.RED, "read": Colour.CYAN, "claimed": Colour.YELLOW,
}  # fmt: skip
_NOTHING = "no proof; bind one with --prove 'CRITERION :: COMMAND'"


def _evidence(page: TicketPage, width: int) -> list[Row]:
    """Each criterion with the command that proves it, or that it is only claimed."""
    made: list[Row] = []
    for one in page.evidence:
        first, *rest = wrap(clean(one.criterion), max(8, width - 10)) or [""]
        made.append(row(Cell(f"  {clean(one.backing):<8}", _BACKING.get(one.backing, Colour.DIM)), Cell(first)))
        made += [row(f"{'':10}{line}") for line in rest]
        where = f" on {one.commit[:9]}" if one.commit else ""
        idle = ", which also passes without the change" if one.idle else ""
        own = ", which the change itself added" if one.own else ""
        by = f"by {one.by}{where}{idle}{own}" if one.by else _NOTHING
        made += paragraph(by, width, indent=10, colour=Colour.DIM)
    return made


_OUTCOMES = {"finished": Colour.GREEN, "at work": Colour.CYAN}


def _work(page: TicketPage, width: int, *, full: bool) -> list[Row]:
    """Attempts, predicted conflicts, cost and environment."""

    def who(one: RunLine) -> str:
        again = f" (start {one.generation})" if one.generation > 1 else ""
        role = f", {one.role}" if one.role else ""
        # `page.access` is how the builder reaches its model; another way is shown.
        return f"attempt {one.attempt}{again}{role}{f' ({one.access})' if one.access not in ('', page.access) else ''}"

    columns: Columns[RunLine] = (
        Column("attempt", who, keeps=True),
        Column("run", lambda one: f"run {one.id}", Colour.DIM, keeps=True),
        Column("began", lambda one: clock(one.started_at), Colour.DIM, least=60),
        Column("lasted", lambda one: fine_duration(one.ended_at - one.started_at) if one.ended_at is not None else ""),
        Column("spent", lambda one: cost(one.usage) if one.usage else "", least=100),
        Column(
            "outcome",
            lambda one: (one.outcome or "at work").replace("_", " "),
            lambda one: _OUTCOMES.get(one.outcome or "at work", Colour.YELLOW),
        ),
        Column("detail", lambda one: one.detail),
    )
    runs = listing(columns, last(page.runs, full), width, indent=2, complete=True)
    clashes = [
        made
        for one in page.clashes
        for made in paragraph(
            f"{one.path}{_lines(one.first, one.last)}{one.definition and f' ({one.definition})'}  "
            f"with {f'ticket {one.ticket}' if one.ticket else 'what landed'}",
            width,
            indent=2,
            colour=Colour.YELLOW,
        )
    ]
    return [
        *_titled("Attempts", [*earlier(len(page.runs), full, "run"), *runs]),
        *_titled("Predicted conflicts", clashes),
        *_titled("Spent", _spent(page, width)),
        *_environment(page, width, full=full),
    ]


def _lines(first: int, last: int) -> str:
    return "" if not first else f" line {first}" if first == last else f" lines {first}-{last}"


_SPENT: Columns[tuple[str, UsageLine]] = (
    Column("run", lambda one: one[0], keeps=True),
    Column("spent", lambda one: cost(one[1]), Colour.BOLD, keeps=True),
    Column(
        "requests",
        lambda one: count(one[1].requests, "request") + (f" ({one[1].failed} failed)" if one[1].failed else ""),
    ),
    Column("in", lambda one: f"{thousands(one[1].input)} in"),
    Column("out", lambda one: f"{thousands(one[1].output)} out"),
    Column("from cache", lambda one: f"{thousands(one[1].cache_read)} from cache"),
    Column("to cache", lambda one: f"{thousands(one[1].cache_write)} to cache"),
)


def _spent(page: TicketPage, width: int) -> list[Row]:
    """The cost of each run, and of all together."""
    if page.usage is None:
        return []
    shares = [(f"run {run.id}", run.usage) for run in page.runs if run.usage is not None]
    shares += [("together", page.usage)] if len(shares) > 1 else []
    made = listing(_SPENT, shares, width, indent=2)
    if page.usage.unpriced:
        without = count(page.usage.unpriced, "request")
        text = f"{without} without a known price, not in the sum; add the price to prices.toml next to your settings"
        made += paragraph(text, width, indent=2, colour=Colour.DIM)
    return made


def _environment(page: TicketPage, width: int, *, full: bool) -> list[Row]:
    place = page.environment
    if place is None or not (place.slot is not None or place.worktree_bytes or place.up or place.down or place.notes):
        return []
    least = "" if place.all_counted else "at least "
    limit = f" of {size(place.limit_bytes)} allowed" if place.limit_bytes else ""
    known = [
        ("slot", "" if place.slot is None else str(place.slot)),
        ("ports", f"{place.ports[0]}-{place.ports[-1]}" if place.ports else ""),
        ("listening", numbers(place.listening)),
        ("temp folder", f"{size(place.temp_bytes)} in {place.temp}" if place.temp else ""),
        ("disk", f"{least}{size(place.worktree_bytes + place.temp_bytes)}{limit}"),
    ]
    made = facts(known, width, indent=2)
    for name, ran in (("up", place.up), ("down", place.down)):
        made += _command(name, ran, width, full) if ran is not None else []
    made += [line for text in place.notes for line in paragraph(text, width, indent=2, colour=Colour.YELLOW)]
    return _titled("Environment", made)


def _command(name: str, ran: CommandLine, width: int, full: bool) -> list[Row]:
    colour = Colour.GREEN if ran.ok else Colour.RED
    made = paragraph(f"{name}: {ran.how}  {ran.command}", width, indent=2, colour=colour)
    return [*made, *tail(ran.tail, width, full)] if full or not ran.ok else made


def _warnings(page: TicketPage, width: int, *, full: bool) -> list[Row]:
    """Hidden characters, tests that look weaker, parts that no check misses; and the changed files."""
    most = None if full else SHORT
    made: list[Row] = []
    if page.hidden_characters:
        text = f"{hidden_warning(page.hidden_characters)} `legion diff {page.ticket.id}` marks them."
        made += _titled("Hidden characters", paragraph(text, width, indent=2, colour=Colour.YELLOW))
    weak = [
        (one.sign, f"{one.path if one.line is None else f'{one.path}:{one.line}'}  {one.words}")
        for one in page.weakened
    ]
    made += _titled("Tests look weaker", [*_warned(weak[:most], width), *more(len(weak), most, "--full")])
    found = page.reversal
    if found is not None:
        open_ = [("unproven", f"{one.path}:{one.line}, {count(one.lines, 'line')}") for one in found.unproven]
        left = f"; {found.left} more were not tried for lack of time" if found.left else ""
        missed = found.tried - len(open_)
        made += _titled(
            "Proof by reversal",
            [
                *_warned([("passes without the change", name) for name in found.idle], width),
                *(note(f"fails without the change, as it should: {clean(name)}", indent=2) for name in found.red),
                *_warned(open_[:most], width),
                *more(len(open_), most, "--full"),
                *(
                    [note(f"checks cover {missed} of {count(found.tried, 'piece')} of the change{left}", indent=2)]
                    if found.tried or found.left
                    else []
                ),
            ],
        )
    files = [line for name in page.changed_files[:most] for line in paragraph(name, width, indent=2)]
    files += more(len(page.changed_files), most, f"legion diff {page.ticket.id}")
    return [*made, *_titled(f"Changes in {count(len(page.changed_files), 'file')}", files)]


def _warned(lines: Sequence[tuple[str, str]], width: int) -> list[Row]:
    return [
        made
        for sign, text in lines
        for made in flow((Cell(f"  {clean(sign)}  ", Colour.YELLOW), Cell(clean(text))), width, indent=4)
    ]


_EVENT: Columns[EventLine] = (
    Column("at", lambda one: clock(one.at), Colour.DIM, keeps=True),
    Column("what", lambda one: one.words),
)
