"""Questions that wait for a person, and what became of them."""

from __future__ import annotations

from dataclasses import asdict, replace

from sqlalchemy import insert, select, update

from legion.domain.errors import Conflict, NotFound
from legion.domain.events import Kind
from legion.domain.questions import OF_THE_ENGINE, Question
from legion.store import schema
from legion.store.database import ReadTransaction, Transaction

_TABLE = schema.questions.c

PROTECTED = "protected/"
"""How the keys of questions about a change begin."""
TOO_LATE = "no answer in time"
ATTEMPTS = "attempts/"
"""How the keys of questions about more attempts begin."""


def ask(tx: Transaction, *, key: str, project: int, ticket: int, run: int, words: str, deadline: float) -> Question:
    """Write the question down. The same key again is the same question."""
    known = tx.execute(select(schema.questions).where(_TABLE.key == key)).one_or_none()
    if known is not None:
        return Question(**known._mapping)
    question = Question(
        id=tx.next("question"),
        key=key,
        project=project,
        ticket=ticket,
        run=run,
        words=words,
        asked_at=tx.now,
        deadline=deadline,
    )
    tx.execute(insert(schema.questions), [asdict(question)])
    data = {"question": question.id, "words": words, "deadline": deadline}
    tx.record(Kind.QUESTION_ASKED, project=project, ticket=ticket, data=data)
    return question


def settle(tx: Transaction, question: int, *, allowed: bool, why: str = "") -> Question:
    """A question is settled once."""
    before = get(tx, question)
    if before.settled_at is not None:
        raise Conflict(f"Question {question} was settled already ({'yes' if before.allowed else 'no'}).")
    values = {"settled_at": tx.now, "allowed": allowed, "why": why}
    tx.execute(update(schema.questions).where(_TABLE.id == question).values(values))
    data = {"question": question, "allowed": allowed, "why": why}
    tx.record(Kind.QUESTION_SETTLED, project=before.project, ticket=before.ticket, data=data)
    return replace(before, settled_at=tx.now, allowed=allowed, why=why)


def withdraw(tx: Transaction, ticket: int, why: str) -> None:
    """Nobody has to answer what is open about this ticket any more: it counts as a no."""
    for question in open_ones(tx):
        if question.ticket == ticket and question.run == OF_THE_ENGINE:
            settle(tx, question.id, allowed=False, why=why)


def overdue(tx: ReadTransaction) -> tuple[Question, ...]:
    """The engine's own whose time is up; those of agents have somebody who waits."""
    return tuple(one for one in open_ones(tx) if one.run == OF_THE_ENGINE and one.deadline <= tx.now)


def get(tx: ReadTransaction, question: int) -> Question:
    row = tx.execute(select(schema.questions).where(_TABLE.id == question)).one_or_none()
    if row is None:
        raise NotFound(f"There is no question {question}: see `legion inbox`.")
    return Question(**row._mapping)


def by_key(tx: ReadTransaction, key: str) -> Question | None:
    row = tx.execute(select(schema.questions).where(_TABLE.key == key)).one_or_none()
    return None if row is None else Question(**row._mapping)


def open_ones(tx: ReadTransaction, *, run: int | None = None) -> tuple[Question, ...]:
    """Those that still wait, oldest first."""
    found = select(schema.questions).where(_TABLE.settled_at.is_(None)).order_by(_TABLE.id)
    if run is not None:
        found = found.where(_TABLE.run == run)
    return tuple(Question(**row._mapping) for row in tx.execute(found))
