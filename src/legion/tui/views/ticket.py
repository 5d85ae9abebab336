"""A ticket's page as rows: head, next step, text, attempts, receipts, reviews, history."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

from legion.client.text.states import style_of
from legion.client.text.terminal import Cell, Colour, clock, count, duration, fine_duration, thousands, wrap
from legion.client.text.tickets import about, dollars
from legion.tui.views.rows import BLANK, Row, clean, definitions, fit, flow, head, note, paragraph, row, table
from legion.wire.history import Events, HistoryLine
from legion.wire.page_parts import ReviewLine
from legion.wire.tickets import ReceiptLine, RunLine, TicketLine, TicketPage, UsageLine

ATTACH, SHELL = "attach", "shell"
"""Keys of the rows of the terminal tab that open one."""
_TAIL = 12
_LAST_LINES = 200
_HEAD_LINES = 3


def head_rows(ticket: TicketLine, available: int) -> list[Row]:
    """Title, state and what it is doing, on as many lines as that takes."""
    style = style_of(ticket.state)
    cells = (
        Cell(f"#{ticket.id} ", Colour.BOLD),
        Cell(clean(ticket.title), Colour.BOLD),
        Cell(f"  {style.symbol} {clean(ticket.state)}", style.colour),
        Cell(f"  {about(ticket)}", Colour.DIM),
    )
    return flow(cells, available)[:_HEAD_LINES]


def next_rows(page: TicketPage, keys: Mapping[str, str], available: int) -> list[Row]:
    """What a person can do about this ticket now."""
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


def about_rows(page: TicketPage, available: int) -> list[Row]:
    """Texts, criteria with their evidence, attempts, environment, cost."""
    rows: list[Row] = list(_facts(page, available))
    for title, text in (
        ("Text", page.text),
        ("Context", page.context),
        ("Criteria", "" if page.evidence else page.criteria),
        ("Plan", page.plan),
        (f"Plan of its agent, {page.planning}", page.proposal),
        ("Feedback", page.feedback),
    ):
        if text.strip():
            rows += [BLANK, head(title), *paragraph(text, available, indent=2)]
    rows += _evidence(page, available)
    if page.runs:
        rows += [BLANK, head("Attempts"), *table([("", _run(run)) for run in page.runs], available, indent=2)]
    if page.clashes:
        rows += [BLANK, head("Predicted conflicts")]
        for one in page.clashes:
            other = f"#{one.ticket}" if one.ticket else "what landed"
            rows.append(row(Cell(f"  {clean(one.path)}:{one.first}  ", Colour.YELLOW), Cell(f"with {other}")))
    return rows


def _facts(page: TicketPage, available: int) -> Iterator[Row]:
    facts = [
        ("epic", page.ticket.epic),
        ("team", page.crew.team if page.crew else ""),
        ("labels", ", ".join(page.labels)),
        ("agent", " ".join(word for word in (page.driver, page.command, page.model) if word)),
        ("model access", page.access),
        ("copied from", page.forked_from),
        ("worktree", page.worktree or ""),
        ("change", f"{page.change[:9]} on {page.base[:9]}" if page.change and page.base else ""),
        ("landed", page.landed[:9] if page.landed else ""),
        ("after", ", ".join(f"#{id}" for id in page.ticket.after)),
        ("spent", _spent(page.usage)),
        ("budget", dollars(page.budget) if page.budget is not None else ""),
        ("waiting until", clock(page.parked_until) if page.parked_until else ""),
    ]
    lines = [("", [Cell(name, Colour.DIM), Cell(clean(value))]) for name, value in facts if value]
    yield from definitions(lines, available)


def _spent(usage: UsageLine | None) -> str:
    if usage is None:
        return ""
    read = usage.input + usage.cache_read + usage.cache_write
    return f"{dollars(usage.usd)}, {thousands(read)} in, {thousands(usage.output)} out"


_BACKING = {
    "proven": Colour.GREEN,
    "green": Colour.GREEN,
    "red": Colour.RED,
    "read": Colour.CYAN,
    "claimed": Colour.YELLOW,
}


def _evidence(page: TicketPage, available: int) -> list[Row]:
    if not page.evidence:
        return []
    rows = [BLANK, head("Criteria")]
    for one in page.evidence:
        first, *rest = wrap(clean(one.criterion), max(8, available - 12)) or [""]
        rows.append(row(Cell(f"  {clean(one.backing):<9}", _BACKING.get(one.backing, Colour.DIM)), Cell(first)))
        rows += [row(Cell(f"{'':11}{line}")) for line in rest]
        rows.append(note(f"{'':11}by {clean(one.by)}" if one.by else f"{'':11}no command proves it"))
    return rows


def _run(run: RunLine) -> list[Cell]:
    outcome = run.outcome or "at work"
    colour = {"finished": Colour.GREEN, "at work": Colour.CYAN}.get(outcome, Colour.YELLOW)
    lasted = fine_duration((run.ended_at or time.time()) - run.started_at)
    return [
        Cell(f"attempt {run.attempt}"),
        Cell(f"run {run.id}", Colour.DIM),
        Cell(clean(run.role)),
        Cell(lasted),
        Cell(dollars(run.usage.usd) if run.usage else ""),
        Cell(clean(outcome).replace("_", " "), colour),
        Cell(clean(run.detail)),
    ]


def receipt_rows(page: TicketPage, available: int, opened: str = "") -> list[Row]:
    """Newest first; the opened one with the end of its output."""
    if not page.receipts:
        text = "No check has run for this ticket yet. Its proofs run when its agent has finished."
        return paragraph(text, available, colour=Colour.DIM)
    left_out = [clean(f"not needed: {sentence}") for sentence in page.not_needed]
    rows = [row for text in left_out for row in paragraph(text, available, colour=Colour.DIM)]
    newest = list(enumerate(page.receipts))[::-1]
    lines = [(str(number), _receipt(receipt)) for number, receipt in newest]
    for (number, receipt), line in zip(newest, table(lines, available, keep=1), strict=True):
        rows.append(line)
        if opened == str(number) or (not opened and receipt.verdict != "green" and number == newest[0][0]):
            rows += _tail(receipt, available)
    return rows


def _receipt(receipt: ReceiptLine) -> list[Cell]:
    style = style_of({"green": "done", "red": "failed"}.get(receipt.verdict, "parked"))
    code = "no exit code" if receipt.exit_code is None else f"exit {receipt.exit_code}"
    return [
        Cell(f"{style.symbol} {clean(receipt.verdict)}", style.colour),
        Cell(clean(receipt.name)),
        Cell(clean(receipt.command)),
        Cell(code, Colour.DIM),
        Cell(fine_duration(receipt.duration), Colour.DIM),
        Cell(f"on {receipt.commit[:9]}", Colour.DIM),
        Cell(clock(receipt.made_at), Colour.DIM),
        *([Cell(f"trusted by {clean(receipt.trusted)}, blind", Colour.YELLOW)] if receipt.trusted else []),
    ]


def _tail(receipt: ReceiptLine, available: int) -> list[Row]:
    made = paragraph(receipt.tail or "(no output)", available, indent=4)[-_TAIL:]
    return [*made, note(f"all of it: {clean(receipt.output)}", indent=4)]


def review_rows(page: TicketPage, keys: Mapping[str, str], available: int) -> list[Row]:
    if not page.reviews:
        text = (
            f"No review yet. An independent agent can read the change: {keys.get('review', 'the menu')} asks for one."
        )
        return paragraph(text, available, colour=Colour.DIM)
    rows: list[Row] = []
    for review in reversed(page.reviews):
        rows += [BLANK] if rows else []
        rows += _review(review, available)
    return rows


_VERDICTS = {"approve": Colour.GREEN, "changes": Colour.YELLOW, "none": Colour.RED}
_WEIGHTS = {"blocking": Colour.RED, "concern": Colour.YELLOW}


def _review(review: ReviewLine, available: int) -> Iterator[Row]:
    verdict = review.verdict or "is reading"
    yield row(
        Cell(f"{clean(review.reader)}  ", Colour.BOLD),
        Cell(verdict, _VERDICTS.get(review.verdict, Colour.CYAN)),
        Cell(f"  on {review.commit[:9]}, round {review.round}, {clean(review.why)}", Colour.DIM),
    )
    yield from paragraph(review.summary or review.complaint, available, indent=2)
    for finding in review.findings:
        where = f"{clean(finding.file)}:{finding.line or ''} " if finding.file else ""
        yield row(Cell(f"  {finding.weight}  ", _WEIGHTS.get(finding.weight, Colour.DIM)), Cell(where, Colour.CYAN))
        yield from paragraph(finding.text, available, indent=4)


def history_rows(events: Events | None, available: int) -> list[Row]:
    """Oldest first. Moments that `rewind` can return to have a key and a mark."""
    if events is None:
        return [note("Reading the history.")]
    rows = [_history(one, available) for one in events.lines]
    if events.omitted:
        rows.insert(0, note(f"{count(events.omitted, 'older line')} not shown"))
    return rows or [note("Nothing has happened yet.")]


def _history(one: HistoryLine, available: int) -> Row:
    colour = Colour.DIM if one.source == "run" else Colour.NONE
    rule = Cell(f"[{clean(one.rule)}] ", Colour.YELLOW) if one.rule else Cell("")
    cells = (
        Cell("↶ " if one.rewind else "  ", Colour.GREEN),
        Cell(f"{clock(one.at)}  ", Colour.DIM),
        Cell(
            f"run {one.run}  " if one.source == "run" else f"{clean(one.kind)}  ",
            Colour.DIM if one.source == "run" else Colour.CYAN,
        ),
        rule,
        Cell(clean(one.words), colour),
    )
    return Row(fit(cells, available), _key_of(one))


def moment_of(events: Events | None, key: str) -> str:
    """The name of the selected moment for `rewind`; empty where the ticket cannot return to it."""
    one = line_of(events, key)
    return one.rewind if one is not None else ""


def line_of(events: Events | None, key: str) -> HistoryLine | None:
    """The line of the row with this key."""
    lines = events.lines if events is not None else []
    return next((one for one in lines if _key_of(one) == key), None)


def _key_of(one: HistoryLine) -> str:
    return f"{one.source} {one.run or 0} {one.n}"


def live_rows(lines: Sequence[str], available: int) -> list[Row]:
    """Lines of an agent's output, wrapped. The lines are clean already."""
    rows = []
    for line in lines:
        colour = Colour.CYAN if line.startswith("> ") else Colour.RED if line.startswith("  failed") else Colour.NONE
        for piece in wrap(line, max(8, available)) or [""]:
            rows.append(Row((Cell(piece, colour),)))
    return rows


def terminal_rows(page: TicketPage | None, lines: Sequence[str], keys: Mapping[str, str], available: int) -> list[Row]:
    """What can be opened in place of the UI, then the last output. The lines are clean already."""
    if page is None:
        return [note("Reading.")]
    offers = []
    if ATTACH in page.ticket.offers:
        offers.append((ATTACH, keys[ATTACH], "Sit down at its agent; Ctrl+Q brings this screen back."))
    if page.worktree:
        offers.append(
            (SHELL, keys[SHELL], "A shell in its worktree, inside its sandbox; exit brings this screen back.")
        )
    cells = [(key, [Cell(shown, Colour.YELLOW), Cell(text)]) for key, shown, text in offers]
    rows = definitions(cells, available) or [note("No agent works on it, and it has no worktree.")]
    last = live_rows(lines[-_LAST_LINES:], available) or paragraph(no_output(page), available, colour=Colour.DIM)
    return [*rows, BLANK, head("The last output"), *last]


def no_output(page: TicketPage | None) -> str:
    if page is None:
        return "Reading."
    if page.ticket.checkpoint:
        return "A checkpoint has no agent: it only runs the checks on what its tickets landed."
    if page.ticket.state == "queued":
        return f"No agent has started yet: {clean(page.ticket.doing) or 'it is queued'}."
    return "Its agent has printed nothing."


def age(moment: float, now: float) -> str:
    return duration(max(0.0, now - moment))
