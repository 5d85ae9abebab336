"""Escalation of a ticket whose attempts are used up: a new conversation, then stronger models, then a question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from legion.domain.events import EventKind
from legion.domain.plans.plan import split_of
from legion.domain.questions import QuestionKind
from legion.domain.rules import Rule, rule_of
from legion.domain.tickets import ladder
from legion.domain.tickets.ladder import Rung, next_try, tries_of
from legion.domain.tickets.ticket import Cause, Fail, Park, ParkReason, Step, Ticket, TryAgain
from legion.jobs.attempts import feedback
from legion.jobs.board import Board
from legion.jobs.trees import settings_of
from legion.store import events
from legion.store.board import goals, projects, questions, tickets
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.store.staff import ticket_holders

_LONGEST = 300


def rungs(context: Board, ticket: Ticket) -> tuple[Rung, ...]:
    wanted = context.user.models
    ladders = dict(wanted.by_label)
    label = ladder.label_of(ticket.spec.labels, ladders)
    model = ticket.spec.model or context.user.claude.model
    return ladder.rungs(model, ladders.get(label, wanted.escalation), fresh_eyes=wanted.fresh_eyes, label=label)


def model(context: Board, ticket: Ticket) -> str:
    """The model of the ticket's next run."""
    return _rung(context, ticket).model


def driver(context: Board, ticket: Ticket) -> str:
    """The program that the ladder chooses for the ticket's next run; empty: the ticket's own."""
    return _rung(context, ticket).driver


def _rung(context: Board, ticket: Ticket) -> Rung:
    there = rungs(context, ticket)
    return there[min(ladder.place(ticket), len(there) - 1)] if ticket.spec.climbs else there[0]


def apply_step(context: Board, tx: Transaction, ticket: Ticket, step: Step) -> tuple[str, Rule]:
    """Take the step, or the one that escalation puts in its place. Returns the reason and the rule."""
    first, *others = _instead(context, tx, ticket, step)
    rule = rule_of(first) if first is step else Rule.LADDER
    first = _with_conflict(tx, ticket, first)
    why = tickets.move(tx, ticket.id, first, rule=rule).reason
    for one in others:
        tickets.move(tx, ticket.id, one)
    propose_if_too_large(tx, ticket, step)
    return why, rule


def _instead(context: Board, tx: Transaction, ticket: Ticket, step: Step) -> tuple[Step, ...]:
    """The steps to take: a final failure becomes one more attempt or a question, any other step stays as it is."""
    there = rungs(context, ticket)
    if not isinstance(step, Fail) or not step.why:
        return (step,)
    if (not ticket.spec.climbs or len(there) == 1) and not (step.asks and step.cause is Cause.CHECKS):
        return (step,)
    if ticket_holders.of_ticket(tx, ticket.id) is not None:
        # A standing agent works on it, with a model and a conversation of its own.
        return (step,)
    again = ladder.climb(ticket, step, there)
    if not step.asks and not ladder.used_up(ladder.leaving(ticket) if step.leaves else ticket, there):
        return (again,)
    questions.ask(
        tx,
        key=f"{QuestionKind.ATTEMPTS.value}:{ticket.id}/{ticket.attempt}",
        kind=QuestionKind.ATTEMPTS,
        project=ticket.project,
        ticket=ticket.id,
        words=(
            f"Shall it be tried again? {tries_of(ticket)} did not succeed, the last because {step.why}. A no fails it."
        ),
        deadline=tx.now + context.user.questions.answer_within,
    )
    # Without a wake time: at the question's deadline the ticket fails.
    return again, Park(ParkReason.QUESTION, step.reason)


def _with_conflict(tx: ReadTransaction, ticket: Ticket, step: Step) -> Step:
    """A resolution that failed for another reason than a conflict: the next one needs both sides of it still."""
    if (
        not isinstance(step, TryAgain)
        or step.cause is Cause.CONFLICT
        or Cause.CONFLICT not in (known := causes(tx, ticket))
    ):
        return step
    about = ticket.feedback if known[-1] is Cause.CONFLICT else ticket.feedback.partition(feedback.CONFLICT_BEFORE)[2]
    return replace(step, feedback=f"{step.feedback}\n\n{feedback.CONFLICT_BEFORE}{about}") if about else step


def leave(context: Board, ticket: Ticket, reason: str, feedback: str) -> TryAgain | Fail:
    """Another attempt in this conversation would fail in the same way: the next rung, where there is one."""
    if ticket.spec.climbs and len(rungs(context, ticket)) > 1:
        return Fail(f"gave up after {tries_of(ticket)}: {reason}", feedback, why=reason, leaves=True)
    return next_try(ticket, reason, feedback)


def tried(tx: ReadTransaction, ticket: Ticket) -> Sequence[str]:
    """Why each attempt since the last retry failed, for an agent in a new conversation."""
    if (ticket.spec.climbs and ladder.place(ticket)) or is_neutral(tx, ticket):
        return [f"attempt {attempt}: {reason[:_LONGEST]}" for attempt, reason, _ in _sent_back(tx, ticket)]
    return ()


def causes(tx: ReadTransaction, ticket: Ticket) -> list[Cause]:
    """Why each attempt since the last retry was sent back."""
    return [cause for *_, cause in _sent_back(tx, ticket)]


def is_neutral(tx: ReadTransaction, ticket: Ticket, *, begins: bool = False) -> bool:
    """Whether its attempt is that of a neutral hand (or the first such), which resolves what others could not."""
    if ticket.spec.command:
        return False
    failed = ladder.failed_resolutions(causes(tx, ticket))
    return failed == ladder.RESOLUTIONS if begins else failed >= ladder.RESOLUTIONS


def _sent_back(tx: ReadTransaction, ticket: Ticket) -> list[tuple[int, str, Cause]]:
    """Attempt, reason and cause."""
    if ticket.attempt - ticket.spared < 2:
        return []
    moves = [event.data for event in events.of_ticket(tx, ticket.id) if event.kind is EventKind.TICKET_MOVED]
    back = [facts for facts in moves if facts.get("step") == "tryagain" and int(str(facts["attempt"])) > ticket.spared]
    return [(int(str(one["attempt"])), str(one["reason"]), Cause(one["cause"])) for one in back]


# Proposes several tickets in place of one that failed because it is too large. The person decides about the plan.


def propose_if_too_large(tx: Transaction, ticket: Ticket, step: Step) -> None:
    """In the transaction that ends the last attempt. Once: a plan about the ticket is enough."""
    if not isinstance(step, Fail) or step.cause is not Cause.SIZE:
        return
    spec = ticket.spec
    settings = settings_of(projects.get(tx, ticket.project)).plans
    if spec.command or spec.checkpoint or spec.dispatcher or not settings.split:
        # A plain program needs no model, and an agent's ticket has no money of the person for a planner.
        return
    if any(plan.about == ticket.id for plan in goals.of_project(tx, ticket.project)):
        return
    goals.create(tx, split_of(ticket))
