"""The seven tickets of the demo, and the expected course of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from legion.demo.scratch import DRIVER
from legion.wire.dispatch import NewTicket
from legion.wire.ticket_pages import TicketPage

KILLED = "printing"
"""The ticket whose runner the demo kills."""
HALF_WRITTEN = "while kill -0"
"""Part of the command that its agent runs while it has uncommitted work."""


@dataclass(frozen=True, kw_only=True)
class DemoTicket:
    """One ticket of the demo: its expected end, and its expected course."""

    ticket: NewTicket
    ends: str
    story: str
    """The course in one sentence, where `happened` is true."""
    happened: Callable[[TicketPage], bool]


def parts() -> list[DemoTicket]:
    return [*_independent(), *_dependent()]


def script_marker(script: str) -> str:
    """The text by which a ticket selects the script of its model."""
    return f"rehearsal: {script}"


def _independent() -> list[DemoTicket]:
    """Tickets without dependencies."""
    return [
        DemoTicket(
            ticket=NewTicket(
                key="rounding",
                title="Round amounts to the nearest cent",
                text="money.cents cuts off what is smaller than a cent. It should round.",
                criteria="Half a cent goes up: 2.345 is 235 cents. A test shows it.",
                driver=DRIVER,
                context=script_marker("rounding"),
            ),
            ends="done",
            story="its check was red at first; it fixed that from the feedback",
            happened=lambda page: was_sent_back(page, "checks failed") and page.ticket.attempt == 2,
        ),
        DemoTicket(
            ticket=NewTicket(
                key="discount",
                title="Take a discount off the total",
                text="Invoice.discount is a percentage that comes off the sum of the lines.",
                criteria="A lamp of 20.00 with a discount of 10 comes to 18.00.",
                driver=DRIVER,
                context=script_marker("discount"),
            ),
            ends="done",
            story="landed",
            happened=lambda page: bool(page.landed),
        ),
        DemoTicket(
            ticket=NewTicket(
                key="tax",
                title="Add tax by country, Norway too",
                text="Invoice.country decides which tax the total includes. Norway has 25 percent.",
                criteria="A lamp of 20.00 comes to 25.00 in Norway.",
                driver=DRIVER,
                context=script_marker("tax"),
            ),
            ends="done",
            story="landed",
            happened=lambda page: bool(page.landed),
        ),
        DemoTicket(
            ticket=NewTicket(
                key=KILLED,
                title="Print an invoice as text",
                text="invoices.printing.page gives an invoice as lines of forty columns.",
                driver=DRIVER,
                context=script_marker("printing"),
            ),
            ends="done",
            story="killed with a half-written file; resumed in the same conversation",
            happened=lambda page: was_killed_and_resumed(page) and page.ticket.attempt == 1,
        ),
    ]


def _dependent() -> list[DemoTicket]:
    return [
        DemoTicket(
            ticket=NewTicket(
                key="amounts",
                title="All about amounts has landed",
                checkpoint=True,
                after_keys=["rounding", "discount", "tax"],
            ),
            ends="done",
            story="a checkpoint: no agent, only the checks on what has landed",
            happened=lambda page: not page.runs and bool(page.receipts),
        ),
        DemoTicket(
            ticket=NewTicket(
                key="export",
                title="Export an invoice as CSV",
                text="invoices.export.rows gives an invoice as text for spreadsheets.",
                prove=["python3 -m unittest -q tests.test_export"],
                driver=DRIVER,
                context=script_marker("export"),
                after_keys=[KILLED, "amounts"],
            ),
            ends="done",
            story="its Claude Code crashed half way; the next attempt resumed from there",
            happened=lambda page: [run.outcome for run in page.runs] == ["failed", "finished"],
        ),
        DemoTicket(
            ticket=NewTicket(
                key="speed",
                title="Make the total ten times faster",
                text="Invoice.total is slow for invoices with many lines.",
                driver=DRIVER,
                context=script_marker("speed"),
                max_attempts=2,
                after_keys=["amounts"],
            ),
            ends="failed",
            story="its agent said `All done!` twice and changed nothing, so it is not done",
            happened=lambda page: "changed nothing" in page.ticket.reason and not page.landed,
        ),
    ]


def was_sent_back(page: TicketPage, why: str) -> bool:
    """An attempt was refused for this reason, and the next one started."""
    return any(
        event.kind == "ticket.moved" and event.data.get("to") == "queued" and why in str(event.data.get("reason"))
        for event in page.history
    )


def met_a_conflict(page: TicketPage) -> bool:
    return was_sent_back(page, "conflict") and page.ticket.state == "done"


def was_killed_and_resumed(page: TicketPage) -> bool:
    """The first run was lost, its files were saved, and the same attempt resumed."""
    if len(page.runs) != 2:
        return False
    first, second = page.runs
    return first.outcome == "lost" and first.saved is not None and second.outcome == "finished"
