"""Attaching to the agent of a ticket: its terminal, or its conversation, which a person takes over and gives back."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

from legion.domain.agents.teams import RolePart
from legion.domain.errors import Retryable, StateConflict
from legion.domain.runs import Outcome, Run
from legion.domain.takeovers import Takeover, TakeoverMode, TakeoverStage
from legion.domain.tickets.ticket import State, Ticket
from legion.jobs.board import Board
from legion.jobs.run.job import is_wanted, run_dir
from legion.runner import control, launch
from legion.runner.spec import RunnerError, RunSpec, read_spec
from legion.service.shared.terminals import PATIENCE, STILL_WAITS, has_opened, leave, terminal_of, wait_for_terminal
from legion.service.tickets.actions import get_ticket
from legion.store.database.transactions import ReadTransaction
from legion.store.work import runs, takeovers
from legion.wire.projects import Done
from legion.wire.terminal import Attach, OpenTerminal

_NO_FORM = (
    "The driver of ticket {id} has no interactive form: send a message with `legion tell {id}`, follow it with "
    "`legion log watch {id}`."
)


def attach(context: Board, ticket_id: int, wanted: Attach, patience: float = PATIENCE) -> OpenTerminal:
    """The ticket's terminal, once there is one; an answer without a socket: ask again.

    An agent that works alone is interrupted between two calls, and its conversation opens in a terminal. A person
    keeps waiting when another one gives up; a terminal that opened for them and has ended does not open again.
    """
    began = context.clock() - wanted.waited
    if not wanted.only_looks:
        _ask(context, ticket_id, began)
    return wait_for_terminal(
        context,
        lambda: _look(context, ticket_id, wanted, began),
        lambda: _cut(context, ticket_id),
        waited=wanted.waited,
        patience=patience,
    )


def _look(context: Board, ticket_id: int, wanted: Attach, began: float) -> OpenTerminal | Run | None:
    with context.store.read() as tx:
        ticket, run = get_ticket(tx, ticket_id), _at_work(tx, ticket_id)
        attended = takeovers.of_ticket(tx, ticket_id)
        waits = attended is not None or _may_ask(context, tx, ticket, began)
        wanted_run = run if run is not None and is_wanted(context, tx, ticket, run) else None
    found = None if wanted_run is None else terminal_of(context, wanted_run)
    if found is not None:
        return _answer(ticket, found)
    if wanted.only_looks:
        return _nothing_to_see(ticket)
    if not waits or ticket.state not in (State.WORKING, State.QUEUED):
        raise _refusal(ticket)
    if attended is None or attended.stage is TakeoverStage.WITHDRAWN:
        return STILL_WAITS
    if run is None or not attended.may_interrupt(run.id):
        return None
    spec = _spec(context, run)
    if spec is not None and not spec.profile.capabilities.interactive:
        give_back(context, ticket_id)
        raise StateConflict(_NO_FORM.format(id=ticket.id))
    return run


def give_back(context: Board, ticket_id: int) -> Done:
    """The person leaves, or gives up waiting: the agent works alone again, with what was said."""
    with context.store.read() as tx:
        get_ticket(tx, ticket_id)
        run, attended = _at_work(tx, ticket_id), takeovers.of_ticket(tx, ticket_id)
    if attended is not None and attended.mode is TakeoverMode.PERSON:
        return Done(message=f"Ticket {ticket_id} stays open: `legion attach {ticket_id}` returns.")
    if attended is None:
        return Done(message=f"No person holds the conversation of ticket {ticket_id}.")
    others = None if run is None or not attended.opens(run.id) else leave(context, run)
    if others:
        return Done(message=f"Another person is still at the agent of ticket {ticket_id}: the last one gives it back.")
    _withdraw(context, ticket_id, left=run if others == 0 else None)
    return Done(message=f"The agent of ticket {ticket_id} works alone again.")


def _ask(context: Board, ticket_id: int, began: float) -> None:
    """Record that a person wants the conversation, and which run works alone now."""
    with context.store.write() as tx:
        ticket, run = get_ticket(tx, ticket_id), _at_work(tx, ticket_id)
        attended = takeovers.of_ticket(tx, ticket_id)
        alone = run.id if run is not None and run.part is RolePart.BUILD else None
        if attended is None:
            opens = run is not None and terminal_of(context, run) is not None
            if not opens and _may_ask(context, tx, ticket, began):
                takeovers.put(tx, Takeover(ticket=ticket.id, mode=TakeoverMode.WHEEL, alone=alone))
        elif attended.stage is TakeoverStage.WITHDRAWN:
            # What ends for the person who gave up is not theirs: the next run is.
            takeovers.put(tx, replace(attended, alone=alone, stage=TakeoverStage.CUT))


def _may_ask(context: Board, tx: ReadTransaction, ticket: Ticket, began: float) -> bool:
    """Whether its conversation continues, and has not opened since the person began to wait."""
    last = runs.at_work(tx, ticket.id)
    resumes = ticket.state is State.QUEUED and last is not None and last.outcome is Outcome.INTERRUPTED
    if ticket.state is not State.WORKING and not resumes:
        return False
    return not has_opened(context, runs.of_ticket(tx, ticket.id, ""), began)


def _cut(context: Board, ticket_id: int) -> bool:
    with context.store.write() as tx:
        run, attended = _at_work(tx, ticket_id), takeovers.of_ticket(tx, ticket_id)
        if run is None or attended is None or not attended.may_interrupt(run.id):
            return False
        takeovers.put(tx, replace(attended, stage=TakeoverStage.CUT))
        return True


def _withdraw(context: Board, ticket_id: int, left: Run | None) -> None:
    """What was interrupted or opened for the person already continues alone when it has ended. `left`: the run whose
    terminal they left, which ends.
    """
    with context.store.write() as tx:
        run, attended = _at_work(tx, ticket_id), takeovers.of_ticket(tx, ticket_id)
        if attended is None or (left is not None and (run is None or run.id != left.id)):
            return
        if run is None or (run.id == attended.alone and attended.stage is TakeoverStage.ASKED):
            takeovers.end(tx, ticket=ticket_id)
            return
        takeovers.put(tx, replace(attended, stage=TakeoverStage.WITHDRAWN))
    if left is None and run.id != attended.alone:
        launch.interrupt(run_dir(context, run))


def _at_work(tx: ReadTransaction, ticket_id: int) -> Run | None:
    run = runs.at_work(tx, ticket_id)
    return run if run is not None and run.ended_at is None else None


def connect(opened: OpenTerminal) -> socket.socket:
    """A connection to the runner that holds the terminal. Raises Retryable where it has just ended."""
    place = Path(opened.socket)
    try:
        connection = control.connect(place.parent, None, place.name)
    except OSError as gone:
        raise Retryable(f"The terminal is gone ({gone.strerror}): open it again.") from None
    connection.setblocking(False)
    return connection


def _spec(context: Board, run: Run) -> RunSpec | None:
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


def _refusal(ticket: Ticket) -> StateConflict:
    if ticket.state is State.WORKING:
        ended = f"The request for the conversation of ticket {ticket.id} has ended: its program ended"
        return StateConflict(f"{ended}. `legion log {ticket.id}` shows it, `legion attach {ticket.id}` asks again.")
    after = {
        State.PARKED: f"`legion resume {ticket.id}` continues it, then attach",
        State.QUEUED: "it has not started yet, so wait for it",
    }.get(ticket.state, f"see `legion ticket {ticket.id}`, or open `legion attach shell {ticket.id}`")
    return StateConflict(f"No agent works on ticket {ticket.id}, which is {ticket.state.value}: {after}.")
