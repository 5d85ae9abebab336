"""Standing agents as rows: the tree, and the page of one."""

from __future__ import annotations

from collections.abc import Iterator

from legion.client.text.terminal import Cell, Colour, clock, count, cut, fine_duration
from legion.client.text.tickets import dollars
from legion.tui.views.rows import BLANK, Row, clean, fit, head, note, paragraph, row
from legion.wire.agents import AgentLine, AgentList, AgentPage
from legion.wire.mail import Mail, MessageLine

_LETTERS = 30


def tree_rows(agents: AgentList | None, width: int, hire_key: str) -> list[Row]:
    """Every agent below the one that it reports to. The key is its id."""
    if agents is None:
        return [note("Reading the agents.")]
    alive = [one for one in agents.agents if one.fired_at is None]
    if not alive:
        return [
            head("No standing agents"),
            *paragraph(f"{hire_key} hires one: it stays, gets mail and can hire others.", width),
        ]
    known = {one.id for one in alive}
    below: dict[str, list[AgentLine]] = {}
    for one in alive:
        below.setdefault(one.parent if one.parent in known else "", []).append(one)
    return list(_branch(below, "", 0, width))


def _branch(below: dict[str, list[AgentLine]], parent: str, depth: int, width: int) -> Iterator[Row]:
    for one in below.get(parent, ()):
        symbol = Cell("● ", Colour.CYAN) if one.working else Cell("○ ", Colour.DIM)
        mail = f"  {one.waiting} unread" if one.waiting else ""
        cells = (
            Cell("  " * min(depth, 8)),
            symbol,
            Cell(clean(one.name), Colour.BOLD),
            Cell(f"  {clean(one.role)}" if one.role else "", Colour.DIM),
            Cell("  only leads" if one.delegate else "", Colour.DIM),
            Cell(mail, Colour.YELLOW),
            Cell(f"  {clean(one.doing)}", Colour.DIM),
        )
        yield Row(fit(cells, width), one.id)
        yield from _branch(below, one.id, depth + 1, width)


def page_rows(page: AgentPage | None, width: int) -> list[Row]:
    if page is None:
        return [note("Select an agent.")]
    one = page.agent
    tools = "all" if one.tools is None else ", ".join(one.tools)
    facts = [
        ("model", one.model),
        ("project", one.project),
        ("budget", f"{dollars(one.budget)}, {dollars(one.left or 0)} left" if one.budget is not None else ""),
        ("spent", dollars(one.spent)),
        ("tools", f"Legion's own; to give: {tools}" if one.delegate else tools),
        ("may hire", "any number" if one.headcount is None else str(one.headcount)),
        ("worktree", page.worktree or ""),
        ("hired", clock(one.hired_at)),
    ]
    rows = [row(Cell(clean(one.name), Colour.BOLD), Cell(f"  {clean(one.doing)}", Colour.CYAN))]
    rows += [row(Cell(f"{name:<9}", Colour.DIM), Cell(cut(clean(value), width - 10))) for name, value in facts if value]
    rows += [BLANK, head("Task"), *paragraph(page.task, width, indent=2, most=8)]
    if page.mail:
        rows += [BLANK, head(f"Waiting for it: {count(len(page.mail), 'message')}")]
        for letter in page.mail:
            rows += letter_rows(letter, width)
    if page.turns:
        rows += [BLANK, head("Last turns")]
        for turn in reversed(page.turns[-5:]):
            lasted = fine_duration(turn.ended_at - turn.started_at) if turn.ended_at else "at work"
            rows.append(note(f"run {turn.id}  {lasted}  {clean(turn.outcome or '')} {clean(turn.detail)}", indent=2))
    return rows


def mail_rows(mail: Mail | None, width: int) -> list[Row]:
    """The person's mail, newest first."""
    letters = mail.messages if mail is not None else []
    rows: list[Row] = []
    for letter in sorted(letters, key=lambda one: -one.sent_at)[:_LETTERS]:
        rows += letter_rows(letter, width)
    return rows or [note("No mail.")]


def letter_rows(letter: MessageLine, width: int) -> list[Row]:
    title = row(
        Cell(f"{clean(letter.sender_name)} → {clean(letter.recipient_name)}  ", Colour.CYAN),
        Cell(f"{clock(letter.sent_at)}  {clean(letter.kind)}, {clean(letter.delivery)}", Colour.DIM),
    )
    return [title, *paragraph(letter.text, width, indent=2, most=12)]
