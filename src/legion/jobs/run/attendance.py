"""Decides the next step after a run at which a person sits: its agent works alone again, or the ticket waits."""

from __future__ import annotations

from dataclasses import replace

from legion.domain.runs import Outcome, Run
from legion.domain.takeovers import Takeover, TakeoverMode, TakeoverStage
from legion.domain.tickets.ticket import Park, ParkReason, Resume, State, Step, Ticket
from legion.jobs.board import Board
from legion.jobs.supervise.wheel import was_wheel
from legion.store.board import tickets
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.store.work import takeovers

TAKEN = "a person takes over its conversation"
GIVEN_BACK = "the person gave its conversation back"


def of_ticket(context: Board, ticket: Ticket) -> Takeover | None:
    with context.store.read() as tx:
        return takeovers.of_ticket(tx, ticket.id)


def is_wanted(context: Board, tx: ReadTransaction, ticket: Ticket, this_run: Run) -> bool:
    """False for a run that opens for a person who gave up meanwhile."""
    attended = takeovers.of_ticket(tx, ticket.id)
    return not was_wheel(context, this_run) or (attended is not None and attended.opens(this_run.id))


def step_after(context: Board, ticket: Ticket, this_run: Run, outcome: Outcome) -> Step | None:
    """The next step where a person decides it; None: the run is judged as any other."""
    if was_wheel(context, this_run):
        return Resume(GIVEN_BACK)
    attended = of_ticket(context, ticket)
    if attended is None:
        return None
    if attended.mode is TakeoverMode.WHEEL:
        taken = GIVEN_BACK if attended.stage is TakeoverStage.WITHDRAWN else TAKEN
        return Resume(taken) if outcome is Outcome.INTERRUPTED else None
    if attended.submitted or outcome in (Outcome.LOST, Outcome.NOT_STARTED):
        return None
    how = f"`legion resume {ticket.id}` opens it again, `legion agents submit {ticket.id}` submits its change"
    return Park(ParkReason.PAUSED, f"its program has ended: {how}")


def settle(tx: Transaction, ticket_id: int, held: int | None) -> None:
    """In the transaction that moves the ticket: a wheel lasts for one run, a submission for one judgement.

    `held` is the run in which a person held the conversation.
    """
    attended = takeovers.of_ticket(tx, ticket_id)
    if attended is None:
        return
    if attended.mode is TakeoverMode.WHEEL:
        over = attended.stage is TakeoverStage.WITHDRAWN or (held is not None and attended.opens(held))
        if over or tickets.get(tx, ticket_id).state is not State.QUEUED:
            takeovers.end(tx, ticket=ticket_id)
    elif attended.submitted:
        takeovers.put(tx, replace(attended, submitted=False))
