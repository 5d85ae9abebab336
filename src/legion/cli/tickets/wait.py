"""`legion wait`: waits until tickets have ended; the exit code is their result."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, replace
from functools import partial

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.live import with_retry
from legion.cli.base.output import count, duration, sanitize
from legion.cli.base.parameters import TICKET, Seconds
from legion.cli.board.status import IN_SHORT
from legion.client.legion import LONGEST_WAIT, Legion
from legion.client.text.rows import Row, listing, row
from legion.wire.board import WaitState
from legion.wire.errors import ChecksFailed, LegionError, NotFound, Retryable
from legion.wire.tickets import TicketLine


@dataclass(frozen=True, kw_only=True)
class Settled:
    state: WaitState
    code: int


@command("wait", example="legion wait 3 4 --timeout 600")
@click.argument("ids", metavar="[N]...", type=TICKET, nargs=-1)
@click.option("--all", "all_projects", is_flag=True, help="The tickets of all projects.")
@click.option("--timeout", type=Seconds(min=0), metavar="S", help="Give up after S seconds, with exit code 75.")
def wait(call: CommandCall, ids: tuple[int, ...], all_projects: bool, timeout: float | None) -> int:
    """Wait until tickets have ended: the named ones, or all of this project.

    Ends with 0 when all are done, 6 when one failed its checks, 1 when one failed otherwise, was stopped or
    cannot continue by itself, and 75 when the time is over. Without numbers, tickets that had failed before count,
    and those that were stopped before do not.
    """
    if ids and all_projects:
        raise click.UsageError("Numbers and --all exclude each other; remove one", click.get_current_context())
    settled = until_settled(call, list(ids), all_projects=all_projects, timeout=timeout)
    call.show(settled.state, _summary)
    return settled.code


def until_settled(call: CommandCall, ids: list[int], *, all_projects: bool, timeout: float | None) -> Settled:
    """Follow tickets until nothing more happens to them by itself, and print each change of state."""
    cwd = None if ids or all_projects else call.cwd
    started = time.monotonic()
    printer, followed = _ChangePrinter(call), _Followed()
    after = 0
    while True:
        left = LONGEST_WAIT if timeout is None else timeout - (time.monotonic() - started)
        state = with_retry(call, partial(_ask, cwd, ids, after, left))
        if not ids:
            state = with_retry(call, partial(followed.with_ended, state))
        printer.show(state)
        if state.settled:
            return Settled(state=state, code=exit_code(call.legion(), state))
        if timeout is not None and time.monotonic() - started >= timeout:
            return Settled(state=state, code=Retryable.exit_code)
        after = state.last_event


def _ask(cwd: str | None, ids: list[int], after: int, seconds: float, legion: Legion) -> WaitState:
    return legion.wait(cwd, ids, after_event=after, timeout=seconds)


class _Followed:
    """Remembers tickets that ended during the wait: asked for all tickets, the daemon returns only open ones."""

    def __init__(self) -> None:
        self._live: set[int] = set()
        self._ended: dict[int, TicketLine] = {}

    def with_ended(self, state: WaitState, legion: Legion) -> WaitState:
        live = {ticket.id: ticket for ticket in state.tickets}
        for id in self._live - live.keys():
            # A dropped ticket is no longer found.
            with contextlib.suppress(NotFound):
                self._ended[id] = legion.wait(None, [id], timeout=0).tickets[0]
        self._live = set(live)
        every = {**self._ended, **live}
        return replace(state, tickets=[every[id] for id in sorted(every)])


class _ChangePrinter:
    """Prints changes of state on stderr; nothing about tickets that had ended before."""

    def __init__(self, call: CommandCall) -> None:
        self._call = call
        self._known: dict[int, str] = {}
        self._started = time.monotonic()
        self._first = True

    def show(self, state: WaitState) -> None:
        if self._call.json:
            return
        for ticket in state.tickets:
            if self._known.get(ticket.id) != ticket.state:
                if not self._first:
                    self._call.say(_line(ticket, self._started))
                self._known[ticket.id] = ticket.state
        if self._first and not state.settled:
            waited_for = count(sum(not _ended(ticket) for ticket in state.tickets), "ticket")
            self._call.say(f"Waiting for {waited_for}; Ctrl-C ends only the waiting.")
        self._first = False


def _line(ticket: TicketLine, started: float) -> str:
    passed = duration(time.monotonic() - started)
    return f"{passed:>7}  #{ticket.id} {sanitize(ticket.state)}: {sanitize(ticket.title)[:60]}"


def _ended(ticket: TicketLine) -> bool:
    return ticket.state in ("done", "failed", "stopped")


def exit_code(legion: Legion, state: WaitState) -> int:
    """The result of the tickets, for scripts."""
    failed = [ticket for ticket in state.tickets if ticket.state == "failed"]
    if any(legion.ticket(ticket.id).cause == "checks" for ticket in failed):
        return ChecksFailed.exit_code
    all_done = all(ticket.state == "done" for ticket in state.tickets)
    return 0 if all_done and not state.stuck else LegionError.exit_code


def _summary(state: WaitState, width: int) -> list[Row]:
    return listing(IN_SHORT, state.tickets, width) or [row("No tickets to wait for.")]
