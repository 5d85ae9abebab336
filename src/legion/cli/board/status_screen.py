"""The screen of `legion status`: the daemon, you, the project, its tickets, the next steps. Without click."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from legion.cli.base.output import Cell, Colour, Screen, clock, count, duration, sanitize, state_cell, symbol
from legion.client.text.agents import list_rows
from legion.client.text.tickets import STYLES, Group, about, cost, group_of, questions_wait, style_of
from legion.wire.agents import Seat
from legion.wire.board import ProjectLine, Status
from legion.wire.tickets import TicketLine

_BASELINES = {
    "green": Cell("checks green", Colour.GREEN),
    "red": Cell("checks red on the branch itself", Colour.RED),
    "none": Cell("no checks", Colour.YELLOW),
    "unknown": Cell("not checked yet", Colour.DIM),
}


def screen_of(status: Status, screen: Screen, *, everything: bool = False) -> list[str]:
    lines = [_daemon_line(status, screen)]
    if status.seat is not None:
        lines += [*seat_lines(status.seat, screen), ""]
    projects = [status.project] if status.project else status.projects
    for project in projects:
        lines.append(_project_line(project, screen))
        lines += [line for note in project.notes for line in screen.note(sanitize(note), Colour.YELLOW)]
    lines.append("")
    lines += _counts(status, screen)
    below = [line for hint in hints(status) for line in screen.note(hint, Colour.DIM, indent=0)]
    # A blank line before the hints and one for the prompt.
    room = None if everything or screen.height is None else screen.height - len(lines) - len(below) - 2
    return [*lines, *_groups(status, screen, room), *below]


def _daemon_line(status: Status, screen: Screen) -> str:
    daemon = status.daemon
    up = duration(time.time() - daemon.started_at)
    facts = f"  {daemon.url}  pid {daemon.pid}  up {up}  sandbox: {sanitize(daemon.sandbox)}"
    return screen.line(Cell(f"Legion {sanitize(daemon.version)}", Colour.BOLD), Cell(facts, Colour.DIM))


def _project_line(project: ProjectLine, screen: Screen) -> str:
    session = f"  session {sanitize(project.session)}:" if project.session else ""
    where = f"{session}  {sanitize(project.branch)} at {project.target[:9]}  "
    cells = [Cell(sanitize(project.name), Colour.BOLD), Cell(where)]
    cells.append(_BASELINES.get(project.baseline, Cell(sanitize(project.baseline))))
    if project.paused:
        cells.append(Cell("  paused", Colour.YELLOW))
    if not project.trusted:
        cells.append(Cell("  not trusted", Colour.YELLOW))
    if project.ahead:
        cells.append(Cell(f"  {count(project.ahead, 'landed commit')} to collect", Colour.GREEN))
    return screen.line(*cells)


def _counts(status: Status, screen: Screen) -> list[str]:
    cells: list[Cell] = []
    for state, number in sorted(
        status.counts.items(), key=lambda pair: list(STYLES).index(pair[0]) if pair[0] in STYLES else 99
    ):
        if number:
            cells.append(Cell(f"{symbol(screen, state)} {number} {sanitize(state)}   ", style_of(state).colour))
    if status.usage is not None:
        cells.append(Cell(f"{cost(status.usage, 'an unknown sum')} spent", Colour.DIM))
    return [screen.line(*cells, indent=2), ""] if cells else []


def _groups(status: Status, screen: Screen, room: int | None) -> list[str]:
    """Tickets below the heads of their groups, in the same columns for all groups."""
    groups = {group: [ticket for ticket in status.tickets if group_of(ticket) is group] for group in Group}
    groups[Group.ENDED].sort(key=lambda ticket: -ticket.moved_at)
    shares = _shares({group: len(members) for group, members in groups.items() if members}, room)
    several = status.project is None and len(status.projects) > 1
    table = screen.table([_row(one, screen, several) for group in shares for one in groups[group][: shares[group]]])
    failed = status.counts.get("failed", 0) - sum(ticket.state == "failed" for ticket in status.tickets)
    omitted = {Group.NEEDS_YOU: failed, Group.ENDED: status.omitted - failed}
    lines: list[str] = []
    for group, share in shares.items():
        lines.append(screen.bold(group.value))
        for ticket, row in zip(groups[group], table[:share], strict=False):
            lines.append(row)
            # What a person has to do is shown complete.
            if group is Group.NEEDS_YOU and about(ticket) not in row:
                lines += screen.note(about(ticket), Colour.DIM, indent=6)
        table = table[share:]
        hidden = len(groups[group]) - share + omitted.get(group, 0)
        if hidden:
            lines.extend(screen.aside(f"and {hidden} more: legion status --all"))
    return [*lines, ""] if lines else []


def _shares(sizes: dict[Group, int], room: int | None) -> dict[Group, int]:
    """How many tickets of each group are shown: all, or one of each in turn until the screen is full."""
    if room is None:
        return sizes
    # Each group also needs a head and a line about the rest.
    left = max(len(sizes), room - 2 * len(sizes))
    shares = dict.fromkeys(sizes, 0)
    while left > 0 and shares != sizes:
        for group in sizes:
            if left > 0 and shares[group] < sizes[group]:
                shares[group] += 1
                left -= 1
    return shares


def _row(ticket: TicketLine, screen: Screen, several: bool) -> list[Cell]:
    title = sanitize(ticket.title)
    place = [Cell(sanitize(ticket.project), Colour.DIM)] if several else []
    return [
        state_cell(screen, ticket.state),
        Cell(f"#{ticket.id}"),
        *place,
        Cell(title),
        Cell(about(ticket), Colour.DIM),
    ]


def hints(status: Status) -> Iterable[str]:
    """The next steps, if there are any."""
    project = status.project
    if project is None and not status.projects:
        yield "No project yet: run `legion init` in a git repository."
        return
    if status.questions:
        yield f"{questions_wait(status)}: legion inbox"
    if status.plans:
        yield f"{count(status.plans, 'plan waits', 'plans wait')} for you: legion plan list"
    if project is not None:
        if project.paused:
            yield f"Nothing new starts while paused: {'legion resume --all' if project.frozen else 'legion resume'}"
        if project.ahead:
            waits = count(project.ahead, "landed commit waits", "landed commits wait")
            after = "legion collect" if project.collectable else "your own commits have to enter the target first"
            yield f"{waits}: {after}"
    failed = [ticket.id for ticket in status.tickets if ticket.state == "failed"]
    if failed:
        one = failed[0]
        number = status.counts.get("failed", len(failed))
        yield f"{count(number, 'ticket')} failed: `legion ticket {one}` says why, `legion retry {one}` tries again"
    if not status.counts or not any(status.counts.values()):
        yield "No tickets yet: legion dispatch -t TITLE TEXT"


def seat_lines(seat: Seat, screen: Screen) -> Iterator[str]:
    """The top of the status screen: who you are, your mail, your direct reports."""
    yield f"You: {sanitize(seat.name)} ({'working' if seat.working else 'idle'})"
    yield f"Pending messages: {len(seat.mail)}"
    for message in seat.mail:
        head = f"{message.sender_name} ({message.kind}, {clock(message.sent_at)}):"
        yield screen.line(Cell(sanitize(head), Colour.BOLD), Cell(f" {sanitize(message.text)}"), indent=2)
    if seat.mail:
        yield from screen.aside("`legion inbox mail` shows the complete texts")
    if seat.reports:
        yield screen.bold("Direct reports")
        yield from screen.rows(list_rows(seat.reports, screen.columns, indent=2))
