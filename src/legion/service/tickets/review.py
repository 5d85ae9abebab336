"""Requests a review of a ticket's change or sends it back, and lists reviews for a ticket's page."""

from __future__ import annotations

from collections.abc import Iterable

from legion.domain.agents.teams import REVIEWER
from legion.domain.errors import StateConflict
from legion.domain.questions import QuestionKind
from legion.domain.review.verdicts import OVERRULED, ReviewRequest
from legion.domain.rules import Rule
from legion.domain.tickets.offers import WITH_CHANGE, may
from legion.domain.tickets.ticket import AskReview, State, Ticket, Unpark
from legion.jobs.attempts import review_rounds
from legion.jobs.board import Board
from legion.service.shared.fragments import shaped
from legion.service.tickets import actions
from legion.store.board import questions, tickets, verdicts
from legion.store.database.transactions import Transaction
from legion.store.work import runs
from legion.wire.ticket_pages import CriterionLine, FindingLine, ReviewLine
from legion.wire.tickets import Acted

_WHY = "a person asked for it"


def review(context: Board, ticket_id: int) -> Acted:
    """Request a review regardless of the policy. A landed change stays landed; one that is about to land waits."""
    with context.store.write() as tx:
        ticket = actions.get_ticket(tx, ticket_id)
        actions.refuse_mid_landing(tx, ticket)
        result = _request_review(tx, ticket)
    return Acted(tickets=[ticket_id], message=f"{result}; see `legion ticket {ticket_id}`.")


def _request_review(tx: Transaction, ticket: Ticket) -> str:
    if ticket.state is State.REVIEWING:
        raise StateConflict(f"Ticket {ticket.id} is already being reviewed; see `legion ticket {ticket.id}`.")
    if not may("review", ticket):
        raise _no_change(ticket, "to review")
    match ticket.state:
        case State.DONE:
            verdicts.ask(tx, ticket, REVIEWER, binding=False, why=_WHY)
            return f"The landed change of ticket {ticket.id} is being reviewed; it stays landed"
        case State.CHECKING:
            verdicts.ask(tx, ticket, REVIEWER, binding=True, why=_WHY)
            return f"Ticket {ticket.id} will be reviewed when its proofs have passed"
        case State.LANDING:
            tickets.move(tx, ticket.id, AskReview((REVIEWER,), _WHY), rule=Rule.PERSON)
            return f"Ticket {ticket.id} is being reviewed and waits for the verdict"
        case _:
            return _review_parked(tx, ticket)


def _review_parked(tx: Transaction, ticket: Ticket) -> str:
    verdicts.ask(tx, ticket, REVIEWER, binding=True, why=_WHY)
    if ticket.parked is not None and ticket.parked.back_to is State.CHECKING:
        return f"Ticket {ticket.id} will be reviewed when its question is answered"
    questions.withdraw(tx, ticket=ticket.id, kind=QuestionKind.REVIEW, why="it is reviewed again")
    tickets.move(tx, ticket.id, Unpark(), rule=Rule.PERSON)
    return f"Ticket {ticket.id} is being reviewed again"


def bounce(context: Board, ticket_id: int, feedback: str) -> Acted:
    """Send a change back to its agent, with a person's feedback and the reviewers' findings."""
    with context.store.write() as tx:
        ticket = actions.get_ticket(tx, ticket_id)
        actions.refuse_mid_landing(tx, ticket)
        if ticket.state is State.DONE:
            raise StateConflict(f"Ticket {ticket_id} has landed. `legion undo {ticket_id}` reverts it.")
        if not may("bounce", ticket):
            raise _no_change(ticket, "to send back")
        if ticket.state is State.PARKED:
            ticket = tickets.move(tx, ticket_id, Unpark(), rule=Rule.PERSON)
        questions.withdraw(
            tx, ticket=ticket_id, kind=QuestionKind.CHANGE, why=feedback.strip() or "the person sent it back"
        )
        tickets.move(tx, ticket_id, review_rounds.sent_back(tx, ticket, feedback.strip()), rule=Rule.PERSON)
        active = runs.active_of(tx, ticket_id)
    actions.end_runs(context, active)
    return Acted(tickets=[ticket_id], message=f"Ticket {ticket_id} goes back to its agent with the feedback.")


def _no_change(ticket: Ticket, what: str) -> StateConflict:
    hints = {
        State.WORKING: f"use `legion tell {ticket.id}` instead",
        State.FAILED: f"`legion retry {ticket.id} --feedback ...` starts it again",
        State.STOPPED: f"`legion retry {ticket.id} --feedback ...` starts it again",
    }
    hint = hints.get(ticket.state, f"see `legion ticket {ticket.id}`")
    return StateConflict(f"Ticket {ticket.id} is {ticket.state.value} and has no change {what}; {hint}.")


def review_lines(ticket: Ticket, readings: Iterable[ReviewRequest]) -> list[ReviewLine]:
    """Given reviews, and pending ones of the current change; requests for a replaced change are left out."""
    there = ticket.change is not None and ticket.state in (*WITH_CHANGE, State.PARKED, State.DONE)
    current = ticket.change.commit if there and ticket.change is not None else ""
    return [_line(reading) for reading in readings if reading.given_at is not None or reading.commit == current]


def _line(reading: ReviewRequest) -> ReviewLine:
    verdict = reading.verdict
    ruling = verdict.ruling.value if verdict is not None else "none" if reading.given_at is not None else ""
    return shaped(
        ReviewLine,
        reading,
        reader=reading.reviewer,
        verdict=ruling,
        complaint=reading.complaint if verdict is None else "",
        summary=verdict.summary if verdict is not None else "",
        findings=[shaped(FindingLine, one) for one in (verdict.findings if verdict is not None else ())],
        criteria=[shaped(CriterionLine, one) for one in (verdict.criteria if verdict is not None else ())],
        overruled=OVERRULED in reading.notes,
    )
