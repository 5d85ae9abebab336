"""Parts of a ticket's screen that only the terminal UI has: the next step by its key, live output, the terminal tab."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from legion.client.text.rows import BLANK, Row, clean, definitions, head, note, paragraph
from legion.client.text.terminal import Cell, Colour, wrap
from legion.wire.ticket_pages import TicketPage

ATTACH, SHELL = "attach", "shell"
"""Keys of the rows of the terminal tab that open one."""
_LAST_LINES = 200


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
