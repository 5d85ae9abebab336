"""Questions of agents to a person: which wait, and what the person answers."""

from __future__ import annotations

from collections.abc import Iterable

from legion.domain.errors import BadInput, Conflict
from legion.domain.questions import OF_THE_ENGINE, Question
from legion.jobs import asking
from legion.jobs.world import World
from legion.store import projects, questions, tickets
from legion.store.database import ReadTransaction, Transaction
from legion.wire.questions import Answer, Answered, Inbox, QuestionLine

_GONE = "its agent had gone"


def inbox(world: World) -> Inbox:
    with world.store.read() as tx:
        return Inbox(questions=lines(tx, questions.open_ones(tx)))


def lines(tx: ReadTransaction, waiting: Iterable[Question]) -> list[QuestionLine]:
    shown = tuple(waiting)
    titles = {ticket.id: ticket.wish.title for ticket in tickets.get_many(tx, {one.ticket for one in shown})}
    names = {project.id: project.name for project in projects.all(tx)}
    return [
        QuestionLine(
            id=one.id,
            project=names.get(one.project, ""),
            ticket=one.ticket,
            title=titles.get(one.ticket, ""),
            words=one.words,
            asked_at=one.asked_at,
            deadline=one.deadline,
        )
        for one in shown
    ]


def answer(world: World, question_id: int, given: Answer) -> Answered:
    """Whoever is first settles it: a person here, or the run's own journal with its deadline."""
    if given.allowed and given.why.strip():
        raise BadInput(
            f"Words go with a no only: answer `legion answer {question_id} yes`, and say more with `legion tell`."
        )
    # The journal's word on it is written down after ours, and finds it settled, so ours keeps its reason.
    with world.store.write() as tx:
        question = questions.get(tx, question_id)
        if question.settled_at is not None:
            raise Conflict(_settled(question))
        if question.run == OF_THE_ENGINE:
            return _about_change(tx, question, given)
        reached = asking.answer(world, question, allowed=given.allowed, why=given.why)
        allowed, why = (given.allowed, given.why) if reached else (False, _GONE)
        questions.settle(tx, question_id, allowed=allowed, why=why)
    who = f"The agent of ticket {question.ticket}"
    if not reached:
        message = f"{who} has gone and hears no answer any more: the question counts as a no."
    elif allowed:
        message = f"{who} goes ahead."
    else:
        message = f"{who} may not, and looks for another way."
    return Answered(question=question_id, ticket=question.ticket, allowed=allowed, message=message)


def _about_change(tx: Transaction, question: Question, given: Answer) -> Answered:
    asking.settle(tx, question, allowed=given.allowed, why=given.why)
    if question.key.startswith(questions.ATTEMPTS):
        went = "is tried again" if given.allowed else "has failed"
    else:
        went = "goes on with its change" if given.allowed else "goes back to its agent, who hears why"
    return Answered(
        question=question.id,
        ticket=question.ticket,
        allowed=given.allowed,
        message=f"Ticket {question.ticket} {went}.",
    )


def _settled(question: Question) -> str:
    said = "yes" if question.allowed else "no"
    why = f", {question.why}" if question.why else ""
    return f"Question {question.id} is settled already ({said}{why}): see `legion ticket {question.ticket}`."
