"""The tool with which an agent asks a person, and waits for the answer."""

from __future__ import annotations

import secrets
import time
import uuid

from legion.domain.errors import BadInput, Retryable, StateConflict
from legion.domain.questions import MOST_OPEN, Question, QuestionKind, SettledBy
from legion.domain.text import count
from legion.jobs.agent.mail_prompt import quoted
from legion.jobs.supervise.questions import settle_overdue
from legion.service.entry.tools.call import Data, NotYet, ToolRequest
from legion.store import events
from legion.store.board import questions
from legion.store.database.transactions import Transaction
from legion.store.work import runs
from legion.wire.mail import AnswerQuestion, QuestionLine

_PATIENCE = 20.0
"""Seconds of one wait; then the caller asks again, and finds the same question."""
_LONGEST_MINUTES = 60.0
_MOST_CHOICES = 9
_LONGEST_CHOICE = 100
_LONGEST = 10_000
_DECIDE = "No answer came in time: decide yourself, and say in your report what you decided."


def ask(call: ToolRequest) -> Data:
    if call.caller.is_person:
        raise BadInput("You are the person, and agents ask you: see `legion inbox`.")
    with call.context.store.write() as tx:
        question = _asked(tx, call)
    deadline = time.monotonic() + _PATIENCE
    while question.settled_at is None:
        left = deadline - time.monotonic()
        if call.news.is_closed:
            raise Retryable("Legion stops now: ask the same again when it runs.")
        if left <= 0:
            raise NotYet
        with call.context.store.read() as tx:
            seen = events.last(tx)
            question = questions.get(tx, question.id)
        if question.settled_at is None:
            overdue = question.deadline - call.context.clock()
            if not call.news.wait(seen, max(0.0, min(left, overdue))) and overdue <= 0:
                settle_overdue(call.context)
    return _result(question)


def answer(call: ToolRequest) -> Data:
    number = call.number("question")
    if number is None:
        waiting = call.service.inbox().questions
        return {"questions": [_shown(one) for one in waiting]} if waiting else {"questions": [], "next": "None waits."}
    settled = call.service.answer(number, AnswerQuestion(choice=call.text("choice"), why=call.text("text")))
    return {"question": number, "choice": settled.choice, "message": settled.message}


def _shown(one: QuestionLine) -> Data:
    asker = one.name or f"ticket-{one.ticket}"
    return {
        "question": one.id,
        "kind": one.kind,
        "from": asker,
        "words": quoted(one.words, source=asker, id=secrets.token_hex(8), about="question"),
        "facts": one.facts,
        "choices": one.choices or "any words",
        "without_an_answer": one.default,
    }


def _asked(tx: Transaction, call: ToolRequest) -> Question:
    """The same text from the same agent is the same question, however often it is sent."""
    caller, words = call.caller, call.text("question").strip()
    choices, default = tuple(dict.fromkeys(call.texts("choices"))), call.text("default")
    _refuse_unfit(words, choices, default)
    agent = "" if caller.ticket is not None else caller.id
    known = questions.latest_of(tx, words, agent=agent, ticket=caller.ticket)
    if known is not None and known.settled_by in (None, SettledBy.PERSON):
        return known
    assert caller.run is not None, "an agent's token is of a run"
    if len(waiting := questions.open_ones(tx, run=caller.run)) >= MOST_OPEN:
        raise StateConflict(
            f"{count(len(waiting), 'question')} of yours wait for the person: wait for an answer, or decide."
        )
    minutes = min(call.amount("minutes") or _LONGEST_MINUTES, _LONGEST_MINUTES)
    return questions.ask(
        tx,
        key=f"{caller.id}:{call.request or uuid.uuid4()}",
        kind=QuestionKind.ASK,
        project=runs.get(tx, caller.run).project,
        agent=agent,
        ticket=caller.ticket,
        run=caller.run,
        words=words,
        choices=choices,
        fallback=default,
        deadline=tx.now + max(minutes, 0.0) * 60,
    )


def _refuse_unfit(words: str, choices: tuple[str, ...], default: str) -> None:
    if len(words) > _LONGEST:
        raise BadInput(f"A question has at most {_LONGEST:,} letters: say only what is needed to answer.")
    if len(choices) > _MOST_CHOICES or any(not one.strip() or len(one) > _LONGEST_CHOICE for one in choices):
        raise BadInput(f"Give at most {_MOST_CHOICES} choices of at most {_LONGEST_CHOICE} letters each.")
    if choices and default and default not in choices:
        raise BadInput(f"The default {default[:40]!r} is none of the choices: take one of them, or leave it out.")


def _result(question: Question) -> Data:
    if question.settled_by is not SettledBy.PERSON:
        return {"answered": False, **({"answer": question.choice} if question.choice else {}), "next": _DECIDE}
    return {"answered": True, "answer": question.choice, **({"words": question.why} if question.why else {})}
