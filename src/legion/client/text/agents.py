"""Standing agents as rows: the tree or list, the page of one, and mail."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from legion.client.text.rows import BLANK, Column, Columns, Row, facts, head, listing, note, paragraph, row
from legion.client.text.terminal import Cell, Colour, clock, count, duration, fine_duration, sanitize
from legion.client.text.tickets import dollars
from legion.wire.agents import AgentLine, AgentList, AgentPage
from legion.wire.mail import Mail, MessageLine
from legion.wire.text import SHORT_ID
from legion.wire.tickets import RunLine

_LETTERS = 30
_STATES = {"heard": "read"}


@dataclass(frozen=True)
class _Node:
    """An agent, and the branches in front of it."""

    agent: AgentLine
    before: str = ""


def state_of(one: AgentLine) -> str:
    return "fired" if one.fired_at is not None else "working" if one.working else "idle"


def _money(one: AgentLine) -> str:
    if one.budget is not None:
        return f"{dollars(one.spent)} of {dollars(one.budget)}"
    return dollars(one.spent) if one.spent else ""


_AGENT: Columns[_Node] = (
    Column("name", lambda it: it.agent.name, Colour.BOLD, keeps=True, branches=lambda it: it.before),
    Column(
        "state", lambda it: state_of(it.agent), lambda it: Colour.CYAN if it.agent.working else Colour.DIM, keeps=True
    ),
    Column("unread", lambda it: f"{it.agent.waiting} unread" if it.agent.waiting else "", Colour.YELLOW, keeps=True),
    Column("id", lambda it: it.agent.id[:SHORT_ID], Colour.DIM, least=70),
    Column("role", lambda it: it.agent.role, Colour.DIM, least=50),
    Column("leads", lambda it: "only leads" if it.agent.delegate else "", Colour.DIM),
    Column("doing", lambda it: it.agent.doing if it.agent.doing != state_of(it.agent) else "", Colour.DIM),
    Column("spent", lambda it: _money(it.agent), Colour.DIM, least=70),
)
_TURN: Columns[RunLine] = (
    Column("run", lambda one: f"run {one.id}", keeps=True),
    Column("began", lambda one: clock(one.started_at), Colour.DIM),
    Column("lasted", lambda one: fine_duration(one.ended_at - one.started_at) if one.ended_at else "", Colour.DIM),
    Column("outcome", lambda one: one.outcome or "at work"),
    Column("detail", lambda one: one.detail, Colour.DIM),
)


def list_rows(agents: Sequence[AgentLine], width: int, *, indent: int = 0) -> list[Row]:
    """In the order of their hire. The key is the id."""
    return listing(_AGENT, map(_Node, agents), width, key=lambda it: it.agent.id, indent=indent)


def rows(found: AgentList | None, width: int, hire: str, *, tree: bool = True) -> list[Row]:
    """Every agent, as a tree below the one that it reports to. `hire` is what hires one."""
    if found is None:
        return [note("Reading the agents.")]
    if not found.agents:
        return [head("No standing agents"), *paragraph(f"{hire} hires one: it stays, gets mail and can hire.", width)]
    if not tree:
        return list_rows(found.agents, width)
    known = {one.id for one in found.agents}
    below: dict[str, list[AgentLine]] = {}
    for one in found.agents:
        # An agent whose parent is not listed is at the top.
        below.setdefault(one.parent if one.parent in known else "", []).append(one)
    return listing(_AGENT, _branch(below, "", ""), width, key=lambda it: it.agent.id)


def _branch(below: dict[str, list[AgentLine]], parent: str, before: str) -> Iterator[_Node]:
    under = below.get(parent, [])
    for one in under:
        last = one is under[-1]
        yield _Node(one, before + ("" if not parent else "└─ " if last else "├─ "))
        yield from _branch(below, one.id, before + ("" if not parent else "   " if last else "│  "))


def page_rows(page: AgentPage | None, width: int) -> list[Row]:
    """Everything about one agent."""
    if page is None:
        return [note("Select an agent.")]
    one = page.agent
    tools = "all" if one.tools is None else ", ".join(one.tools)
    left = f"{dollars(one.spent)} spent by itself, {dollars(one.left or 0)} left of {dollars(one.budget or 0)}"
    known = [
        ("id", one.id[:SHORT_ID]),
        ("role", one.role),
        ("reports to", one.parent),
        ("project", one.project),
        ("program", one.driver),
        ("model", one.model),
        ("tools", f"Legion's own; to give: {tools}" if one.delegate else tools),
        ("money", f"{dollars(one.spent)} spent, no limit" if one.budget is None else left),
        ("may hire", _may_hire(one)),
        ("worktree", page.worktree or ""),
        ("hired", clock(one.hired_at)),
    ]
    made = [row(Cell(sanitize(one.name), Colour.BOLD), Cell(f"  {state_of(one)}", Colour.CYAN))]
    if one.doing != state_of(one):
        made += paragraph(one.doing, width, indent=2, colour=Colour.DIM)
    made += [*facts(known, width, indent=2), BLANK, head("Task"), *paragraph(page.task, width, indent=2, most=8)]
    if page.reports:
        made += [BLANK, head("Reports"), *list_rows(page.reports, width, indent=2)]
    if page.mail:
        made += [BLANK, head(count(len(page.mail), "message waits", "messages wait"))]
        made += [line for letter in page.mail for line in letter_rows(letter, width, most=2)]
    if page.turns:
        made += [BLANK, head("Turns"), *listing(_TURN, page.turns, width, indent=2)]
    return made


def _may_hire(one: AgentLine) -> str:
    heads = "any number" if one.headcount is None else str(one.headcount)
    deep = "" if one.depth is None else f", {count(one.depth, 'level')} deep"
    return "none" if one.headcount == 0 or one.depth == 0 else f"{heads} at once{deep}"


def mail_rows(mail: Mail | None, width: int) -> list[Row]:
    """The person's mail, newest first."""
    letters = sorted(mail.messages if mail is not None else [], key=lambda one: -one.sent_at)[:_LETTERS]
    return [made for letter in letters for made in letter_rows(letter, width)] or [note("No mail.")]


def letter_rows(letter: MessageLine, width: int, *, most: int | None = 12) -> list[Row]:
    ago = duration(time.time() - letter.sent_at)
    answers = f", answers {letter.reply_to}" if letter.reply_to else ""
    state = _STATES.get(letter.delivery, letter.delivery)
    title = row(
        Cell(f"{sanitize(letter.sender_name)} to {sanitize(letter.recipient_name)}", Colour.BOLD),
        Cell(f"  {letter.number}, {letter.kind}, {ago} ago, {state}{answers}", Colour.DIM),
    )
    return [title, *paragraph(letter.text, width, indent=2, most=most)]


def correspondence_rows(mail: Mail, width: int, *, nothing: str) -> list[Row]:
    """Letters in their order, complete."""
    made = [line for letter in mail.messages for line in (BLANK, *letter_rows(letter, width, most=None))]
    return made[1:] or [row(nothing)]
