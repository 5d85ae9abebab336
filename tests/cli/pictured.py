"""Answers of the daemon as the tests of screens picture them: plain data, with small numbers and fixed times."""

from __future__ import annotations

import time
from dataclasses import replace

from legion.domain.tickets import board
from legion.wire.board import DaemonLine, Graph, ProjectLine, Status
from legion.wire.ticket_pages import ReceiptLine, TicketPage
from legion.wire.tickets import RunLine, TicketLine

COMMIT = "3f2a1c9d" * 5
OLD = "0123abcd" * 5


class Pictured:
    """Tickets, and the answers that show them."""

    def __init__(self) -> None:
        self.tickets: dict[int, TicketLine] = {}

    def put(self, id: int, title: str = "", state: str = "queued", **different: object) -> None:
        line = TicketLine(
            id=id,
            project="shop",
            title=title or f"Ticket {id}",
            state=state,
            after=[],
            attempt=0,
            max_attempts=5,
            checkpoint=False,
            epic="",
            priority=0,
            reason="",
            unchecked=False,
            held_up_by=[],
            created_at=1000.0 + id,
            moved_at=2000.0 + id,
        )
        self.tickets[id] = replace(line, **different)  # type: ignore[arg-type]

    def status(self, *, everywhere: bool = False, all: bool = False) -> Status:
        states = [ticket.state for ticket in self.tickets.values()]
        line = ProjectLine(
            name="shop",
            root="/src/shop",
            branch="main",
            paused=False,
            trusted=True,
            target=COMMIT,
            baseline="green",
            ahead=2,
        )
        return Status(
            daemon=DaemonLine(
                pid=4242,
                url="http://127.0.0.1:6666",
                version="0.1.0",
                data_dir="/data",
                started_at=time.time() - 65,
                sandbox="bubblewrap works",
            ),
            project=None if everywhere else line,
            projects=[line],
            counts={state: states.count(state) for state in dict.fromkeys(states)},
            tickets=list(self.tickets.values()),
            omitted=0 if all else 7,
            last_event=1,
        )

    def graph(self) -> Graph:
        edges = {ticket.id: ticket.after for ticket in self.tickets.values()}
        return Graph(
            tickets=list(self.tickets.values()),
            edges=[[id, other] for id, after in edges.items() for other in after],
            waves=board.waves(edges),
            critical_path=board.critical_path(edges, dict.fromkeys(edges, 1.0)),
        )

    def page(
        self, id: int, *, runs: list[RunLine] | None = None, receipts: list[ReceiptLine] | None = None
    ) -> TicketPage:
        return TicketPage(
            ticket=self.tickets[id],
            text="Make it so.",
            context="Look into app/.",
            criteria="make test passes",
            plan="",
            files=["app/**"],
            prove=["make login-test"],
            driver="",
            command="agent --fast",
            model="",
            feedback="",
            parked_until=None,
            base=OLD,
            change=COMMIT,
            landed=None,
            worktree="/src/shop-legion/ticket-1",
            runs=runs or [],
            receipts=receipts or [],
            history=[],
            changed_files=["app/login.py"],
        )


def a_receipt(name: str, verdict: str, command: str = "") -> ReceiptLine:
    return ReceiptLine(
        name=name,
        command=command or f"make {name}",
        commit=COMMIT,
        tree=OLD,
        verdict=verdict,
        exit_code=0 if verdict == "green" else 1,
        duration=2.5,
        made_at=3000.0,
        tail="" if verdict == "green" else "E   assert 1 == 2\n1 failed\n",
        output="/data/receipts/1",
    )


def a_run(id: int, outcome: str | None, detail: str = "") -> RunLine:
    return RunLine(
        id=id,
        attempt=id,
        generation=1,
        started_at=2000.0,
        ended_at=2064.0 if outcome else None,
        outcome=outcome,
        detail=detail,
        saved=None,
    )
