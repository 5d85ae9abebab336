"""The lines that are always there: places, connection, counts, money, limits; what to do next; the help of a place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from legion.client.text.providers import limit_text
from legion.client.text.rows import BLANK, Row, clean, definitions, fit, head, table
from legion.client.text.terminal import Cell, Colour, count, width
from legion.client.text.tickets import STYLES, cost, questions_wait, style_of
from legion.tui.keys import Key, KeyContext, KeyMap, shown_key
from legion.tui.link.connection import Phase
from legion.wire.board import Status
from legion.wire.plans import PlanLine
from legion.wire.providers import Providers

_PHASES = {
    Phase.CONNECTING: Cell("… connecting", Colour.YELLOW),
    Phase.LIVE: Cell("● live", Colour.GREEN),
    Phase.SLOW: Cell("◌ slow", Colour.YELLOW),
    Phase.GONE: Cell("✗ gone", Colour.RED),
    Phase.BACK: Cell("● back", Colour.GREEN),
}
_NARROW = 76
_NEED = ("failed", "parked")
"""States that may wait for the person."""
_FULL = 0.8
"""A limit of which more is used is shown as a warning."""


def top_line(places: Iterable[tuple[str, str]], here: str, phase: Phase, available: int) -> Row:
    """`places` are (key, name); the connection is at the right end."""
    cells: list[Cell] = []
    for key, name in places:
        mark = name == here
        text = f" {key} {name} " if available >= _NARROW or mark else f" {key} "
        cells.append(Cell(text, Colour.BOLD if mark else Colour.DIM))
    right = _PHASES[phase]
    room = available - width(right.text) - 1
    left = fit(cells, room)
    gap = max(1, available - width(right.text) - sum(width(cell.text) for cell in left))
    return Row((*left, Cell(" " * gap), right))


def status_line(status: Status | None, providers: Providers | None, available: int) -> Row:
    """Project, what needs the person, money, limits, then counts by state: what is cut on the right can wait."""
    if status is None:
        return Row((Cell("Waiting for the daemon's first answer.", Colour.DIM),))
    for short in (False, True):
        cells = list(_project(status))
        if status.questions:
            cells.append(Cell(f"{count(status.questions, 'question')}  ", Colour.YELLOW))
        cells += _counts(status, _NEED, short=False)
        if status.usage is not None:
            cells.append(Cell(f"{cost(status.usage, 'cost not known')}  "))
        cells += limits(providers, short=short or available < _NARROW)
        cells += _counts(status, [one for one in STYLES if one not in _NEED], short=short or available < _NARROW)
        if sum(width(cell.text) for cell in cells) <= available:
            break
    return Row(fit(cells, available))


def _counts(status: Status, states: Iterable[str], *, short: bool) -> list[Cell]:
    found = [(style_of(state), status.counts.get(state, 0), state) for state in states]
    return [
        Cell(f"{style.symbol}{number} " if short else f"{style.symbol}{number} {state}  ", style.colour)
        for style, number, state in found
        if number
    ]


def _project(status: Status) -> Iterable[Cell]:
    project = status.project
    if project is None:
        yield Cell(f"all {count(len(status.projects), 'project')}  ", Colour.BOLD)
        return
    session = f" @{clean(project.session)}" if project.session else ""
    yield Cell(f"{clean(project.name)}{session}  ", Colour.BOLD)
    if project.paused:
        yield Cell("paused  ", Colour.YELLOW)
    if project.ahead:
        yield Cell(f"↓{project.ahead} to collect  ", Colour.GREEN)


def limits(providers: Providers | None, *, short: bool = False) -> list[Cell]:
    """How much of each provider's limit is used, and when it is reset; `short` leaves out of which and until when."""
    found = []
    for provider in providers.providers if providers is not None else ():
        if provider.limit is not None and provider.limit.utilization is not None:
            full = provider.limit.utilization >= _FULL
            used = f"{provider.limit.utilization:.0%}" if short else limit_text(provider.limit)
            text = f"{clean(provider.name)} {used}  "
            found.append(Cell(text, Colour.RED if full else Colour.DIM))
    return found


def next_step(
    status: Status | None, phase: Phase, trouble: str, keys: dict[str, str], plans: Sequence[PlanLine] = ()
) -> Row | None:
    """The most important thing that waits for the person, with the key that does it; None where nothing does.

    The row's key is the action, for a click.
    """
    if phase in (Phase.GONE, Phase.CONNECTING) and trouble:
        start = f"{keys['start_daemon']} starts it; " if "start_daemon" in keys else ""
        # What to do comes first: a narrow terminal cuts the reason, which names a long path.
        return Row(
            (
                Cell("Not connected. ", Colour.RED),
                Cell(f"{start}it is tried again by itself. "),
                Cell(clean(trouble), Colour.DIM),
            ),
            "start_daemon",
        )
    if phase is Phase.SLOW:
        return Row((Cell("The daemon takes its time; what you see may be old. Keys still work.", Colour.YELLOW),))
    if trouble:
        return Row((Cell(clean(trouble), Colour.RED),))
    return None if status is None else _of_board(status, keys, plans)


def _of_board(status: Status, keys: dict[str, str], plans: Sequence[PlanLine]) -> Row | None:
    project = status.project
    failed = [ticket.id for ticket in status.tickets if ticket.state == "failed"]
    if project is None and not status.projects:
        return _hint("No project yet.", f"{keys['init']} makes one of the git repository that you are in.", "init")
    if status.questions:
        return _hint(f"{questions_wait(status)}.", f"{keys['inbox']} opens the inbox.", "inbox")
    if plans:
        return _hint(
            f"Plan {plans[0].id} waits for you: {clean(plans[0].goal)[:60]}.",
            f"{keys['plans']} opens the plans.",
            "plans",
        )
    if project is not None and not project.trusted:
        return _hint("legion.toml is not trusted, so nothing runs.", "Read it and run `legion trust`.")
    if project is not None and project.paused:
        return _hint(
            "The project is paused: nothing new starts.", f"{keys['pause_project']} resumes it.", "pause_project"
        )
    if failed:
        number = status.counts.get("failed", len(failed))
        return _hint(
            f"{count(number, 'ticket')} failed.",
            f"Select #{failed[0]}: Enter shows why, {keys['retry']} tries again.",
            str(failed[0]),
        )
    if project is not None and project.notes:
        return _hint(clean(project.notes[0]), "")
    if project is not None and project.ahead:
        return _hint(
            f"{count(project.ahead, 'landed commit waits', 'landed commits wait')}.",
            f"{keys['collect']} brings them into {clean(project.branch)}.",
            "collect",
        )
    if not status.tickets:
        return _hint("The board is empty.", f"{keys['new_ticket']} writes the first ticket.", "new_ticket")
    return None


def _hint(fact: str, step: str, does: str = "") -> Row:
    """`does`: the action of a click, or the number of the ticket that it opens."""
    return Row((Cell(f"{fact} ", Colour.YELLOW), Cell(step)), does)


_TITLES = {
    KeyContext.EVERYWHERE: "Everywhere",
    KeyContext.LIST: "In every list",
    KeyContext.TICKETS: "For the selected ticket",
    KeyContext.TICKET: "On a ticket's screen",
    KeyContext.FORM: "In a form",
}

_WITH_NAMES = 96
"""Columns from which the names of actions stand next to what they do."""


def help_rows(keys: KeyMap, contexts: Iterable[KeyContext], available: int) -> list[Row]:
    rows: list[Row] = []
    listed = dict.fromkeys((*contexts, KeyContext.EVERYWHERE))
    for context in listed:
        rows += [BLANK] if rows else []
        rows.append(
            head(_TITLES.get(context, f"In {context.value}" if context is KeyContext.DIFF else f"On {context.value}"))
        )
        shown = [key for key in keys.of(context) if key.keys]
        if available >= _WITH_NAMES:
            rows += table([("", [*_cells(key), Cell(key.id, Colour.DIM)]) for key in shown], available, indent=2)
        else:
            rows += definitions([("", _cells(key)) for key in shown], available, indent=2)
    if available < _WITH_NAMES:
        # The names are what a line of the settings needs; next to the texts there is no room for them.
        names = [key for context in listed for key in keys.of(context)]
        rows += [BLANK, head("Names for [tui] keys in your settings")]
        rows += definitions([("", [Cell(key.label), Cell(key.id, Colour.DIM)]) for key in names], available, indent=2)
    return rows


def _cells(key: Key) -> list[Cell]:
    return [Cell(" ".join(map(shown_key, key.keys)), Colour.CYAN), Cell(key.help)]
