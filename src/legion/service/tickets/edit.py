"""Edits a ticket before it starts, and before it is tried again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from legion.domain.errors import BadInput, StateConflict
from legion.domain.tickets import board
from legion.domain.tickets.evidence import Bound, criteria_of
from legion.domain.tickets.spec import LandingGate
from legion.domain.tickets.ticket import Retry, State, Ticket
from legion.jobs.board import Board
from legion.service.tickets import actions
from legion.service.tickets.actions import get_ticket
from legion.store.board import past_tickets, tickets
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.store.work import runs
from legion.wire.dispatch import TICKET_FIELDS
from legion.wire.tickets import Acted, Action, EditTicket

_ANY_TIME = {"priority", "gate", "alone"}
"""Fields that count for work in progress, too."""
_FOR_THE_AGENT = ("title", "text", "context", "criteria", "plan")
_BEFORE_A_START = (State.DRAFT, State.QUEUED, State.FAILED, State.STOPPED)


def edit(context: Board, ticket_id: int, wanted: EditTicket) -> Acted:
    given = {name: value for name, value in asdict(wanted).items() if value is not None}
    if not given:
        raise BadInput(f"Name what to change: `legion edit {ticket_id} --priority 5`, or --text, --after and others.")
    with context.store.write() as tx:
        ticket = get_ticket(tx, ticket_id)
        if wanted.retire is not None:
            return _retire(tx, ticket, given)
        apply(tx, ticket, given)
    named = ", ".join(given)
    return Acted(tickets=[ticket_id], message=f"Ticket {ticket_id} is changed: {named}.")


def _retire(tx: Transaction, ticket: Ticket, given: Mapping[str, Any]) -> Acted:
    if ticket.state is not State.DONE or not ticket.spec.proofs or len(given) > 1:
        raise StateConflict(f"Only proofs of a landed ticket retire, by --retire alone: `legion ticket {ticket.id}`.")
    past_tickets.retire(tx, ticket.project, ticket.id, " ".join(given["retire"].split()))
    now = "run for later changes no more" if given["retire"] else "run for later changes again"
    return Acted(tickets=[ticket.id], message=f"The proofs of ticket {ticket.id} {now}.")


def apply(tx: Transaction, ticket: Ticket, given: Mapping[str, Any]) -> Ticket:
    """The ticket with these values. Raises BadInput or StateConflict, and changes nothing then."""
    _refuse_faults(ticket, given)
    _refuse_started(tx, ticket, given)
    values = dict(given)
    if "title" in values:
        values["title"] = " ".join(values["title"].split())
    if "after" in values:
        values["after"] = tuple(dict.fromkeys(values["after"]))
        _refuse_edges(tx, ticket, values["after"])
    if "files" in values:
        values["files"] = tuple(dict.fromkeys(values["files"]))
    if "gate" in values:
        values["gate"] = LandingGate(values["gate"]) if values["gate"] else None
    if "criteria" in values:
        values["bound"] = _still_bound(ticket, values["criteria"])
    return tickets.edit(tx, ticket.id, values, feedback=_feedback(ticket, values))


def _refuse_faults(ticket: Ticket, given: Mapping[str, Any]) -> None:
    for name, value in given.items():
        field = TICKET_FIELDS[name]
        if fault := field.fault(value):
            raise BadInput(f"Ticket {ticket.id}: {field.shown_name} {fault}.")
    if not given.get("title", "-").strip():
        raise BadInput(f"Ticket {ticket.id} needs a title.")


def _refuse_started(tx: ReadTransaction, ticket: Ticket, given: Mapping[str, Any]) -> None:
    state = ticket.parked.back_to if ticket.parked is not None else ticket.state
    if state is State.DONE:
        raise StateConflict(f"Ticket {ticket.id} has landed. Dispatch a new one.")
    at_once = given.keys() <= _ANY_TIME
    if not at_once and (state not in _BEFORE_A_START or runs.active_of(tx, ticket.id)):
        raise StateConflict(
            f"Ticket {ticket.id} is {ticket.state.value}; only its priority, its gate and --alone can change now. "
            f"`legion tell {ticket.id}` reaches its agent, `legion stop {ticket.id}` lets you edit it."
        )


def _refuse_edges(tx: ReadTransaction, ticket: Ticket, after: tuple[int, ...]) -> None:
    edges = tickets.edges(tx)
    board.refuse_unknown(after, edges)
    board.refuse_cycles({number: list(others) for number, others in edges.items()} | {ticket.id: list(after)})


def _still_bound(ticket: Ticket, criteria: str) -> tuple[Bound, ...]:
    """The commands that prove a line which is still there; those of other lines run as proofs of the whole ticket."""
    before, now = criteria_of(ticket.spec.criteria), criteria_of(criteria)
    return tuple(
        Bound(criterion=now.index(before[one.criterion]), by=one.by)
        for one in ticket.spec.bound
        if before[one.criterion] in now
    )


def _feedback(ticket: Ticket, values: Mapping[str, Any]) -> str | None:
    """An agent that has read the ticket before learns of the new texts with its next attempt."""
    changed = [name for name in _FOR_THE_AGENT if name in values and values[name] != getattr(ticket.spec, name)]
    if not ticket.attempt or not changed:
        return None
    texts = "\n\n".join(f"New {name}:\n{values[name] or '(none)'}" for name in changed)
    note = f"The person changed the ticket since your last attempt. This counts now:\n\n{texts}"
    return "\n\n".join(part for part in (note, ticket.feedback) if part)


def retry(context: Board, ticket_id: int, action: Action) -> Acted:
    """Try an ended ticket again, changed as the request says."""
    if action.edit is None:
        return actions.retry(context, ticket_id, action.feedback)
    given = {name: value for name, value in asdict(action.edit).items() if value is not None}
    with context.store.write() as tx:
        ticket = get_ticket(tx, ticket_id)
        if ticket.state not in (State.FAILED, State.STOPPED):
            raise StateConflict(f"Ticket {ticket_id} is {ticket.state.value}; only an ended one can be tried again.")
        if given:
            apply(tx, ticket, given)
        tickets.move(tx, ticket_id, Retry(action.feedback))
    named = f", with a new {', '.join(given)}" if given else ""
    return Acted(tickets=[ticket_id], message=f"Ticket {ticket_id} is queued again{named}.")
