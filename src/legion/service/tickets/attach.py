"""Attaching to the agent of a ticket: its terminal, or its conversation, which a person takes over and gives back."""

from __future__ import annotations

import socket
from pathlib import Path

from legion.domain.errors import Retryable, StateConflict
from legion.domain.runs import Run
from legion.domain.tickets.attendance import Attendance, AttendMode
from legion.domain.tickets.ticket import State, Ticket
from legion.jobs.context import Context
from legion.jobs.run.job import run_dir
from legion.runner import control, launch
from legion.runner.spec import RunnerError, RunSpec, read_spec
from legion.service.shared.terminals import TerminalLook, terminal_of, wait_for_terminal
from legion.service.tickets.dispatch import get_ticket
from legion.store.work import attendances, runs
from legion.wire.projects import Done
from legion.wire.terminal import Attach, OpenTerminal

_NO_FORM = (
    "The driver of ticket {id} has no interactive form: send a message with `legion tell {id}`, follow it with "
    "`legion watch {id}`."
)


def attach(context: Context, ticket_id: int, wanted: Attach) -> OpenTerminal:
    """The ticket's terminal, once there is one; an answer without a socket: ask again.

    An agent that works alone is interrupted between two calls, and its conversation opens in a terminal.
    """
    return wait_for_terminal(context, lambda: _look(context, ticket_id, wanted), waited=wanted.waited)


def _look(context: Context, ticket_id: int, wanted: Attach) -> TerminalLook:
    with context.store.read() as tx:
        ticket, run = get_ticket(tx, ticket_id), runs.at_work(tx, ticket_id)
        attended = attendances.of_ticket(tx, ticket_id)
    if run is None or run.ended_at is not None:
        run = None
    found = None if run is None else terminal_of(context, run)
    if found is not None:
        return TerminalLook(opened=_answer(ticket, found))
    if wanted.only_looks:
        return TerminalLook(opened=_nothing_to_see(ticket))
    if not _may_open(ticket, attended):
        raise _refusal(ticket)
    if attended is None:
        _take(context, ticket, run)
        return TerminalLook()
    return TerminalLook(interrupts=run if attended.mode is AttendMode.WHEEL else None)


def give_back(context: Context, ticket_id: int) -> Done:
    """The person leaves: the agent works alone again, with what was said. Nothing to do where no one holds it."""
    with context.store.read() as tx:
        get_ticket(tx, ticket_id)
        run, attended = runs.at_work(tx, ticket_id), attendances.of_ticket(tx, ticket_id)
    if attended is None or attended.mode is not AttendMode.WHEEL:
        return Done(message=f"No person holds the conversation of ticket {ticket_id}.")
    opened = run is not None and run.ended_at is None and terminal_of(context, run) is not None
    # A runner that was just killed takes no request.
    if run is None or not opened or not launch.interrupt(run_dir(context, run)):
        with context.store.write() as tx:
            attendances.end(tx, ticket_id)
    return Done(message=f"The agent of ticket {ticket_id} works alone again.")


def connect(opened: OpenTerminal) -> socket.socket:
    """A connection to the runner that holds the terminal. Raises Retryable where it has just ended."""
    place = Path(opened.socket)
    try:
        connection = control.connect(place.parent, None, place.name)
    except OSError as gone:
        raise Retryable(f"The terminal is gone ({gone.strerror}): open it again.") from None
    connection.setblocking(False)
    return connection


def _take(context: Context, ticket: Ticket, run: Run | None) -> None:
    """Record that a person wants the wheel, before anything is interrupted for it."""
    spec = None if run is None else _spec(context, run)
    if spec is not None and not spec.profile.capabilities.interactive:
        raise StateConflict(_NO_FORM.format(id=ticket.id))
    with context.store.write() as tx:
        if attendances.of_ticket(tx, ticket.id) is None:
            attendances.put(tx, Attendance(ticket=ticket.id, mode=AttendMode.WHEEL))


def _spec(context: Context, run: Run) -> RunSpec | None:
    try:
        return read_spec(run_dir(context, run))
    except RunnerError:
        return None


def _answer(ticket: Ticket, socket: Path) -> OpenTerminal:
    wheel = read_spec(socket.parent).options.get("wheel") is True
    leaves = "gives it back to its agent" if wheel else "detaches"
    message = f"Ticket {ticket.id}: {ticket.spec.title}. Ctrl-Q {leaves}."
    return OpenTerminal(run=socket.parent.name, socket=str(socket), message=message, wheel=wheel)


def _nothing_to_see(ticket: Ticket) -> OpenTerminal:
    return OpenTerminal(run="", socket="", message=f"Ticket {ticket.id} has no terminal now; its output follows.")


def _may_open(ticket: Ticket, attended: Attendance | None) -> bool:
    """Whether a terminal opens by itself, now or after a while."""
    if ticket.state is State.WORKING:
        return True
    return ticket.state is State.QUEUED and attended is not None


def _refusal(ticket: Ticket) -> StateConflict:
    after = {
        State.PARKED: f"`legion resume {ticket.id}` continues it, then attach",
        State.QUEUED: "it has not started yet, so wait for it",
    }.get(ticket.state, f"see `legion ticket {ticket.id}`, or open `legion shell {ticket.id}`")
    return StateConflict(f"No agent works on ticket {ticket.id}, which is {ticket.state.value}: {after}.")
