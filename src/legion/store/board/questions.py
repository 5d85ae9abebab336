"""Questions to a person, and how they were settled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from types import SimpleNamespace

from sqlalchemy import bindparam, func, insert, select, update

from legion.domain.errors import NotFound, StateConflict
from legion.domain.events import EventKind
from legion.domain.questions import CHOICES, FALLBACKS, MORE, ONCE, PROJECT, YES, Question, QuestionKind, SettledBy
from legion.domain.scheduling.budgets import scope_of
from legion.store.database import schema
from legion.store.database.fixed_query import FixedQuery, Stored
from legion.store.database.transactions import ReadTransaction, Transaction

_TABLE = schema.questions.c


def ask(
    tx: Transaction,
    *,
    key: str,
    kind: QuestionKind,
    project: int,
    words: str,
    deadline: float,
    agent: str = "",
    ticket: int | None = None,
    run: int | None = None,
    facts: Mapping[str, str] | None = None,
    choices: Sequence[str] | None = None,
    fallback: str | None = None,
    silent: bool = False,
) -> Question:
    """Store the question. The same key again is the same question. `silent`: it is settled at once."""
    known = by_key(tx, key)
    if known is not None:
        return known
    question = Question(
        id=tx.next("question"),
        key=key,
        kind=kind,
        project=project,
        agent=agent,
        ticket=ticket,
        run=run,
        words=words,
        facts=dict(facts or {}),
        choices=CHOICES[kind] if choices is None else tuple(choices),
        fallback=FALLBACKS[kind] if fallback is None else fallback,
        asked_at=tx.now,
        deadline=deadline,
    )
    tx.execute(insert(schema.questions), [asdict(question)])
    data = {"question": question.id, "kind": kind.value, "agent": agent, "words": words, "deadline": deadline}
    if not silent:
        tx.record(EventKind.QUESTION_ASKED, project=project, ticket=ticket, data=data)
    return question


def settle(tx: Transaction, question: int, choice: str, why: str = "", *, by: SettledBy = SettledBy.PERSON) -> Question:
    """A question is settled once."""
    before = get(tx, question)
    if before.settled_at is not None:
        raise StateConflict(f"Question {question} was settled already ({before.choice or 'no answer'}).")
    values = {"settled_at": tx.now, "settled_by": by, "choice": choice, "why": why}
    tx.execute(update(schema.questions).where(_TABLE.id == question).values(values))
    settled = replace(before, settled_at=tx.now, settled_by=by, choice=choice, why=why)
    data: dict[str, object] = {"question": question, "choice": choice, "why": why, "by": by.value}
    if before.kind is QuestionKind.PERMISSION:
        data["allowed"] = settled.allowed
    tx.record(EventKind.QUESTION_SETTLED, project=before.project, ticket=before.ticket, data=data)
    return settled


def withdraw(
    tx: Transaction,
    *,
    why: str,
    ticket: int | None = None,
    agent: str = "",
    kind: QuestionKind | None = None,
    but: Sequence[QuestionKind] = (),
) -> None:
    """Withdraw questions of a ticket or an agent that no longer need an answer."""
    for question in open_ones(tx, ticket=ticket, agent=agent):
        if kind in (None, question.kind) and question.kind not in but:
            settle(tx, question.id, question.fallback, why, by=SettledBy.END)


def get(tx: ReadTransaction, question: int) -> Question:
    row = tx.execute(select(schema.questions).where(_TABLE.id == question)).one_or_none()
    if row is None:
        raise NotFound(f"There is no question {question}: see `legion inbox`.")
    return _question(row)


def by_key(tx: ReadTransaction, key: str) -> Question | None:
    return _BY_KEY.first(tx, wanted=key)


def latest_of(tx: ReadTransaction, words: str, *, agent: str = "", ticket: int | None = None) -> Question | None:
    """The last question of this asker with this key."""
    same = (_TABLE.words == words, _TABLE.agent == agent, _TABLE.kind == QuestionKind.ASK)
    found = select(schema.questions).where(*same).order_by(_TABLE.id.desc()).limit(1)
    found = found.where(_TABLE.ticket.is_(None) if ticket is None else _TABLE.ticket == ticket)
    row = tx.execute(found).one_or_none()
    return None if row is None else _question(row)


def last_said(tx: ReadTransaction, ticket: int, kind: QuestionKind) -> float:
    """When a person last settled such a question about the ticket; 0 where none has."""
    mine = (_TABLE.ticket == ticket, _TABLE.kind == kind, _TABLE.settled_by == SettledBy.PERSON)
    last: float = tx.execute(select(func.coalesce(func.max(_TABLE.settled_at), 0.0)).where(*mine)).scalar_one()
    return last


def open_ones(
    tx: ReadTransaction, *, run: int | None = None, ticket: int | None = None, agent: str = ""
) -> tuple[Question, ...]:
    """Open questions, oldest first."""
    found = _OPEN.all(tx) if ticket is None else _OPEN_OF_TICKET.all(tx, of_ticket=ticket)
    return tuple(one for one in found if run in (None, one.run) and agent in ("", one.agent))


def reachable(tx: ReadTransaction, project: int) -> dict[str, bool]:
    """The hosts that the person allowed or refused to the project's agents: the last answer about each."""
    return dict(_REACHABLE.all(tx, of_project=project))


def more_money(tx: ReadTransaction) -> dict[str, float]:
    """What the person added to shared budgets beyond the settings, by scope."""
    about = (_TABLE.kind == QuestionKind.BUDGET, _TABLE.ticket.is_(None), _TABLE.agent == "", _TABLE.choice == MORE)
    given: dict[str, float] = {}
    for row in tx.execute(select(_TABLE.key, _TABLE.facts).where(*about)):
        scope = scope_of(row.key)
        given[scope] = given.get(scope, 0.0) + float(row.facts["usd"])
    return given


def _question(row: Stored) -> Question:
    facts = vars(row) if isinstance(row, SimpleNamespace) else row._mapping
    return Question(**{**facts, "choices": tuple(row.choices)})


_ALL_OPEN = select(schema.questions).where(_TABLE.settled_at.is_(None)).order_by(_TABLE.id)
_OPEN = FixedQuery(_ALL_OPEN, _question, remember=None)
_OPEN_OF_TICKET = FixedQuery(_ALL_OPEN.where(_TABLE.ticket == bindparam("of_ticket")), _question, remember=50)
_BY_KEY = FixedQuery(select(schema.questions).where(_TABLE.key == bindparam("wanted")), _question, remember=50)
_REACHABLE = FixedQuery(
    select(_TABLE.facts, _TABLE.choice)
    .where(
        _TABLE.kind == QuestionKind.NETWORK,
        _TABLE.project == bindparam("of_project"),
        _TABLE.settled_by == SettledBy.PERSON,
        _TABLE.choice != ONCE,
    )
    .order_by(_TABLE.settled_at),
    lambda row: (row.facts["host"], row.choice in (PROJECT, YES)),
    remember=None,
)
