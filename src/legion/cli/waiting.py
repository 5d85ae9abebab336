"""`legion wait`: until tickets have ended, and how they did as the exit code."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

import click

from legion.cli.command import Call, command
from legion.cli.live import lasting
from legion.cli.output import Cell, Screen, count, duration, harmless
from legion.cli.parameters import TICKET
from legion.cli.states import state_cell
from legion.cli.status import about
from legion.client.legion import LONGEST_WAIT, Legion
from legion.wire.errors import ChecksFailed, LegionError, TryAgain
from legion.wire.projects import WaitState
from legion.wire.tickets import TicketLine


@dataclass(frozen=True, kw_only=True)
class Settled:
    state: WaitState
    code: int


@command("wait", example="legion wait 3 4 --timeout 600")
@click.argument("ids", metavar="[N]...", type=TICKET, nargs=-1)
@click.option("--all", "all_projects", is_flag=True, help="The tickets of all projects.")
@click.option(
    "--timeout", type=click.FloatRange(min=0), metavar="S", help="Give up after so many seconds, with exit code 75."
)
def wait(call: Call, ids: tuple[int, ...], all_projects: bool, timeout: float | None) -> int:
    """Wait until tickets have ended: the named ones, or all of this project.

    Ends with 0 when all are done, 6 when one failed its checks, 1 when one failed otherwise, was stopped or
    cannot go on by itself, and 75 when the time is over.
    """
    if ids and all_projects:
        raise click.UsageError("Name tickets or say --all, not both", click.get_current_context())
    settled = until_settled(call, list(ids), all_projects=all_projects, timeout=timeout)
    call.answer(settled.state, lambda: _summary(settled.state, call.screen))
    return settled.code


def until_settled(call: Call, ids: list[int], *, all_projects: bool, timeout: float | None) -> Settled:
    """Follow tickets until nothing more happens to them by itself; says each change."""
    cwd = None if ids or all_projects else call.cwd
    began = time.monotonic()
    teller = _Teller(call)
    after = 0
    while True:
        left = LONGEST_WAIT if timeout is None else timeout - (time.monotonic() - began)
        state = lasting(call, lambda legion: legion.wait(cwd, ids, all=all_projects, after_event=after, timeout=left))
        teller.tell(state)
        if state.settled:
            return Settled(state=state, code=exit_code(call.legion(), state))
        if timeout is not None and time.monotonic() - began >= timeout:
            return Settled(state=state, code=TryAgain.exit_code)
        after = state.last_event


class _Teller:
    """Says on stderr what changed since the last time; nothing about tickets that had ended before."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._known: dict[int, str] = {}
        self._began = time.monotonic()
        self._first = True

    def tell(self, state: WaitState) -> None:
        if self._call.json:
            return
        for ticket in state.tickets:
            if self._known.get(ticket.id) != ticket.state:
                if not self._first:
                    self._call.say(_line(ticket, self._began))
                self._known[ticket.id] = ticket.state
        if self._first and not state.settled:
            self._call.say(
                f"Waiting for {count(sum(not _ended(t) for t in state.tickets), 'ticket')}; Ctrl-C ends only the waiting."
            )
        self._first = False


def _line(ticket: TicketLine, began: float) -> str:
    passed = duration(time.monotonic() - began)
    return f"{passed:>7}  #{ticket.id} {harmless(ticket.state)}: {harmless(ticket.title)[:60]}"


def _ended(ticket: TicketLine) -> bool:
    return ticket.state in ("done", "failed", "stopped")


def exit_code(legion: Legion, state: WaitState) -> int:
    """How it went, for a script."""
    failed = [ticket for ticket in state.tickets if ticket.state == "failed"]
    if any(failed_its_checks(legion, ticket.id) for ticket in failed):
        return ChecksFailed.exit_code
    all_done = all(ticket.state == "done" for ticket in state.tickets)
    return 0 if all_done and not state.stuck else LegionError.exit_code


def failed_its_checks(legion: Legion, id: int) -> bool:
    """Whether the last thing we learned about its last attempt is a red receipt."""
    page = legion.ticket(id)
    began = page.runs[-1].started_at if page.runs else 0.0
    latest = [receipt for receipt in page.receipts if receipt.made_at >= began]
    return bool(latest) and latest[-1].verdict == "red"


def _summary(state: WaitState, screen: Screen) -> Iterable[str]:
    rows = [
        [state_cell(screen, ticket.state), Cell(f"#{ticket.id}"), Cell(harmless(ticket.title)), Cell(about(ticket))]
        for ticket in state.tickets
    ]
    return screen.table(rows, indent=0) or ["There is nothing to wait for."]
