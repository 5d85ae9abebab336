"""`legion agents` and `legion tell all`: standing agents, and messages as text."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import click

from legion.cli.agents.lines import agent_row, agent_state, report_lines
from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import Cell, Colour, Screen, clock, count, duration, sanitize
from legion.cli.base.texts import read_text
from legion.wire.agents import AgentLine, AgentList, AgentPage
from legion.wire.mail import Broadcast, Mail, MessageLine

_FIRST_LINES = 6
_STATES = {"heard": "read"}
_SHORT = 8


@command("agents", example="legion agents --tree")
@click.option("--tree", "as_tree", is_flag=True, help="As a tree: which agent reports to which.")
@click.option("--all", "with_fired", is_flag=True, help="Also agents that were fired.")
def agents(call: CommandCall, as_tree: bool, with_fired: bool) -> None:
    """List standing agents: what each is doing, and what waits for it."""
    found = call.legion().agents(with_fired)
    call.answer(found, lambda: _tree(found, call.screen) if as_tree else _list(found, call.screen))


@command("broadcast", example="legion tell all 'The release is on Friday.'")
@click.argument("message", metavar="MESSAGE")
@click.option("--subtree", metavar="ID", default="", help="Only this agent and all agents below it.")
def broadcast(call: CommandCall, message: str, subtree: str) -> None:
    """Send a message to every agent below you; - reads it from stdin."""
    wanted = Broadcast(text=read_text(message, "MESSAGE"), subtree=subtree, request=os.urandom(16).hex())
    call.report(call.legion().broadcast(wanted))


def page_lines(page: AgentPage, screen: Screen) -> Iterator[str]:
    """Everything about one agent."""
    line = page.agent
    yield screen.line(Cell(sanitize(line.name), Colour.BOLD), Cell(f"  {line.id}  ({agent_state(line)})"))
    yield from screen.aside(sanitize(line.doing))
    facts = [("role", line.role), ("reports to", line.parent), ("project", line.project)]
    facts += [("program", line.driver), ("model", line.model)]
    tools = "all" if line.tools is None else ", ".join(line.tools)
    facts += [("tools", f"Legion's own; to give: {tools}" if line.delegate else tools), ("money", _money(line))]
    facts += [("may hire", _may_hire(line)), ("worktree", page.worktree or "")]
    yield from screen.table([[Cell(name, Colour.DIM), Cell(sanitize(value))] for name, value in facts if value])
    yield screen.bold("Task")
    yield from screen.paragraph(page.task, most_lines=_FIRST_LINES, rest="--json")
    if page.reports:
        yield screen.bold("Reports")
        yield from report_lines(page.reports, screen)
    if page.mail:
        yield screen.bold(count(len(page.mail), "message waits", "messages wait"))
        for message in page.mail:
            yield from _message(message, screen, most_lines=2)
    if page.turns:
        yield screen.bold("Turns")
        rows = [
            [Cell(f"run {turn.id}"), Cell(clock(turn.started_at)), Cell(turn.outcome or "under way"), Cell(turn.detail)]
            for turn in page.turns
        ]
        yield from screen.table(rows)


def _list(found: AgentList, screen: Screen) -> list[str]:
    if not found.agents:
        return ["No standing agents; `legion agents hire TASK` hires one."]
    return screen.table([agent_row(line) for line in found.agents], indent=0)


def _tree(found: AgentList, screen: Screen) -> list[str]:
    reports: dict[str, list[AgentLine]] = {}
    known = {line.id for line in found.agents}
    for line in found.agents:
        # An agent whose parent is not listed is at the top.
        reports.setdefault(line.parent if line.parent in known else "root", []).append(line)
    lines = [screen.bold("root")]
    rows: list[list[Cell]] = []

    def grow(parent: str, indent: str) -> None:
        below = reports.get(parent, [])
        for line in below:
            last = line is below[-1]
            branch = ("└─ " if last else "├─ ") if screen.unicode else "- "
            first, *rest = agent_row(line)
            rows.append([Cell(indent + branch + first.text, first.colour), *rest])
            grow(line.id, indent + ("   " if last or not screen.unicode else "│  "))

    grow("root", "")
    return [*lines, *screen.table(rows, indent=0)]


def _money(line: AgentLine) -> str:
    if line.budget is None:
        return f"${line.spent:.2f} spent, no limit"
    return f"${line.spent:.2f} spent by itself, ${line.left or 0:.2f} left of ${line.budget:.2f}"


def _may_hire(line: AgentLine) -> str:
    heads = "any number" if line.headcount is None else str(line.headcount)
    deep = "" if line.depth is None else f", {count(line.depth, 'level')} deep"
    return "none" if line.headcount == 0 or line.depth == 0 else f"{heads} at once{deep}"


def mail_lines(found: Mail, screen: Screen, *, nothing: str) -> Iterator[str]:
    if not found.messages:
        yield nothing
        return
    for position, message in enumerate(found.messages):
        if position:
            yield ""
        yield from _message(message, screen, most_lines=None)


def _message(message: MessageLine, screen: Screen, *, most_lines: int | None) -> Iterator[str]:
    ago = duration(time.time() - message.sent_at)
    names = f"{message.sender_name} to {message.recipient_name}"
    answers = f", answers {message.reply_to}" if message.reply_to else ""
    state = _STATES.get(message.delivery, message.delivery)
    facts = f"  {message.number}, {message.kind}, {ago} ago, {state}{answers}, {message.id[:_SHORT]}"
    yield screen.line(Cell(sanitize(names), Colour.BOLD), Cell(facts, Colour.DIM))
    yield from screen.paragraph(message.text, most_lines=most_lines, rest="--json")
