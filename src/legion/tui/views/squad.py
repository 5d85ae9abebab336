"""The squad as rows: a pane for each agent at work, and the conversation with a standing agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from legion.client.text.rows import BLANK, Row, clean, fit, head, note, paragraph, row
from legion.client.text.terminal import Cell, Colour, clock, count, cut, duration, thousands, width, wrap
from legion.client.text.tickets import cost
from legion.wire.agents import AgentLine, AgentList
from legion.wire.history import RunningLine
from legion.wire.mail import Mail, MessageLine
from legion.wire.tickets import TicketLine, UsageLine

LEAST_LINES, MOST_LINES = 2, 14
ROOT = "root"
LEADER = "leader"
"""The role of a standing agent that plans, dispatches and reports."""
FIRST_HIRE = {"task": "Lead this project.", "name": LEADER, "role": LEADER}
"""What the form for a hire holds where there is no leader yet."""
LIVE_LINES = 12
"""Lines of a leader's output below the conversation while it works."""


def pane_rows(
    running: Sequence[RunningLine],
    tails: Mapping[int, Sequence[str]],
    tickets: Mapping[int, TicketLine],
    *,
    width: int,
    height: int,
    now: float,
) -> list[Row]:
    """One pane below the other, each as high as there is room. The key is the ticket, or `agent ID`."""
    if not running:
        return []
    lines = max(LEAST_LINES, min(MOST_LINES, height // len(running) - 1))
    rows: list[Row] = []
    fit = max(1, height // (lines + 1))
    if len(running) > fit:
        rows.append(note(f"{count(len(running), 'agent')} at work; {len(running) - fit} more below"))
    # Those that ask come first.
    for line in sorted(running, key=lambda one: not _asks(tickets.get(one.ticket or 0))):
        key = str(line.ticket) if line.ticket is not None else f"agent {line.agent}"
        rows.append(Row(_pane_head(line, tickets, width, now), key))
        rows += _last_lines(tails.get(line.run, ()), lines, width, key)
    return rows


def _asks(ticket: TicketLine | None) -> bool:
    return ticket is not None and ticket.question is not None


def _pane_head(line: RunningLine, tickets: Mapping[int, TicketLine], columns: int, now: float) -> tuple[Cell, ...]:
    ticket = tickets.get(line.ticket) if line.ticket is not None else None
    name = (
        f"#{line.ticket} {clean(ticket.title) if ticket is not None else ''}"
        if line.ticket is not None
        else clean(line.name)
    )
    role = f" ({clean(line.name)})" if line.ticket is not None and line.name else ""
    since = duration(now - (line.activity_at or line.started_at))
    doing = f"{clean(line.activity)}, {since}" if line.activity else f"at work for {since}"
    right = f" {_cost(line.usage)} " if line.usage is not None else " "
    room = max(8, columns - width(right) - 3)
    title = cut(f"{name}{role}", max(8, room * 2 // 3))
    cells = fit((Cell("▌ ", Colour.CYAN), Cell(title, Colour.BOLD), Cell(f"  {doing}", Colour.CYAN)), room + 2)
    gap = " " * max(1, columns - sum(width(cell.text) for cell in cells) - width(right))
    return (*cells, Cell(gap), Cell(right, Colour.DIM))


def _cost(usage: UsageLine) -> str:
    tokens = usage.input + usage.output + usage.cache_read + usage.cache_write
    return f"{thousands(tokens)} tokens {cost(usage)}"


def _last_lines(lines: Sequence[str], number: int, columns: int, key: str) -> list[Row]:
    wrapped: list[str] = []
    for line in list(lines)[-number:]:
        wrapped += wrap(line, max(8, columns - 3)) or []
    shown = wrapped[-number:]
    rows = [Row((Cell("▌ ", Colour.DIM), Cell(cut(line, columns - 2), _colour(line))), key) for line in shown]
    if not rows:
        rows.append(Row((Cell("▌ ", Colour.DIM), Cell("it has printed nothing yet", Colour.DIM)), key))
    return rows


def _colour(line: str) -> Colour:
    return Colour.CYAN if line.startswith("> ") else Colour.RED if line.startswith("  failed") else Colour.NONE


def idle_rows(at_work: int, waiting: int, keys: Mapping[str, str], width: int) -> list[Row]:
    """In place of the panes where no agent is at work: why, and what to do."""
    if at_work:
        text = "No agent prints now: checks, reviews or the merge queue are at work."
    elif waiting:
        text = f"No agent is at work. {count(waiting, 'ticket waits', 'tickets wait')}; the board says for what."
    else:
        text = f"No agent is at work. {keys['new_ticket']} writes a ticket, {keys['hire']} hires a standing agent."
    return paragraph(text, width, colour=Colour.DIM)


def leader_of(agents: AgentList | None, project: str) -> AgentLine | None:
    """The standing agent that the person talks to: the project's leader, else the first one that they hired."""
    mine = [one for one in agents.agents if one.fired_at is None and one.parent == agents.you] if agents else []
    here = [one for one in mine if one.project == project or not project]
    return next((one for one in here if leads(one)), here[0] if here else None)


def leads(agent: AgentLine) -> bool:
    return " ".join(agent.role.lower().split()) == LEADER


def offer_rows(keys: Mapping[str, str], width: int) -> list[Row]:
    """Without a standing agent: what can be done instead of talking."""
    return [
        head("No leader"),
        *paragraph("A leader plans, dispatches tickets and answers you here.", width, colour=Colour.DIM),
        row(Cell(f" {keys['hire']} ", Colour.CYAN), "hire one"),
        row(Cell(f" {keys['new_ticket']} ", Colour.CYAN), "write a ticket yourself"),
    ]


def talk_rows(leader: AgentLine, mail: Mail | None, width: int, live: Sequence[str] = ()) -> list[Row]:
    """The person's messages, oldest first: reading marks them as read, so those of other agents are shown, too.

    `live`: what the leader has printed in its present turn.
    """
    state = ("at work" if leader.working else "idle") + (", only leads" if leader.delegate else "")
    rows = [
        row(
            Cell(f"{clean(leader.name)}  ", Colour.BOLD),
            Cell(f"{state}  {clean(leader.doing)}", Colour.CYAN if leader.working else Colour.DIM),
        )
    ]
    letters = mail.messages if mail is not None else []
    for letter in sorted(letters, key=lambda one: one.sent_at):
        rows += _letter(letter, width)
    if not letters:
        rows += [BLANK, note("No message yet. Type below; Enter sends.")]
    if live:
        rows += [BLANK, *_last_lines(live, LIVE_LINES, width, "")]
    return rows


def _letter(letter: MessageLine, width: int) -> list[Row]:
    # Notices of Legion itself are in the person's name for the agent, and were not written by the person.
    is_notice = letter.kind == "notice" and letter.sender == ROOT
    mine = letter.sender == ROOT and not is_notice
    sender = "you" if mine else "Legion" if is_notice else clean(letter.sender_name)
    name = f"{sender} to {clean(letter.recipient_name)}" if letter.sender == ROOT else sender
    when = f"{clock(letter.sent_at)}, {clean(letter.delivery)}" if mine else clock(letter.sent_at)
    title = row(Cell(f"{name}  ", Colour.GREEN if mine else Colour.CYAN), Cell(when, Colour.DIM))
    return [BLANK, title, *paragraph(letter.text, width, indent=2)]
