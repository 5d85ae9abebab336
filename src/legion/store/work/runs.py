"""Runs: attempts at tickets and turns of agents, when they ran, and how they ended."""

from __future__ import annotations

import uuid
from dataclasses import asdict, replace

from sqlalchemy import bindparam, func, insert, select, update

from legion.domain.agents.agent import Agent
from legion.domain.agents.teams import RolePart
from legion.domain.errors import NotFound, StateConflict
from legion.domain.events import EventKind
from legion.domain.runs import Outcome, Run
from legion.store.database import schema
from legion.store.database.fixed_query import FixedQuery, Stored
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.store.work import rewinds

_TABLE = schema.runs.c


def _run(row: Stored) -> Run:
    return Run(**vars(row))


_ACTIVE = FixedQuery(select(schema.runs).where(_TABLE.ended_at.is_(None)).order_by(_TABLE.id), _run, remember=500)
_GET = FixedQuery(select(schema.runs).where(_TABLE.id == bindparam("wanted")), _run, remember=100)


def start(tx: Transaction, ticket: int, attempt: int, role: str = "", part: RolePart = RolePart.BUILD) -> Run:
    """A new run of this attempt. Its generation counts how often the attempt was lost before.

    Each role has a conversation of its own.
    """
    same = (_TABLE.ticket == ticket, _TABLE.attempt == attempt, _TABLE.role == role)
    lost: int = tx.execute(select(func.count()).where(*same, _TABLE.outcome == Outcome.LOST)).scalar_one()
    generation = 1 + lost
    before = latest(tx, ticket, role)
    rewound = rewinds.after_run(tx, before.id) if before is not None else None
    carried_on = rewound.conversation if rewound is not None else before.conversation if before is not None else ""
    run = Run(
        id=tx.next("run"),
        project=_project(tx, ticket),
        ticket=ticket,
        role=role,
        part=part,
        attempt=attempt,
        generation=generation,
        started_at=tx.now,
        conversation=carried_on or str(uuid.uuid4()),
    )
    tx.execute(insert(schema.runs), [asdict(run)])
    data = {"run": run.id, "attempt": attempt, "generation": generation, **({"role": role} if role else {})}
    tx.record(EventKind.RUN_STARTED, project=run.project, ticket=ticket, data=data)
    return run


def start_turn(tx: Transaction, agent: Agent, prompt: str) -> Run:
    """A turn of a standing agent. Its generation counts how many before it were lost in a row."""
    lost = 0
    for before in reversed(of_agent(tx, agent.number)):
        if before.outcome is not Outcome.LOST:
            break
        lost += 1
    run = Run(
        id=tx.next("run"),
        project=agent.project,
        agent=agent.number,
        generation=1 + lost,
        started_at=tx.now,
        conversation=agent.id,
        prompt=prompt,
    )
    tx.execute(insert(schema.runs), [asdict(run)])
    data = {"run": run.id, "agent": agent.id, "name": agent.name, "generation": run.generation}
    tx.record(EventKind.RUN_STARTED, project=run.project, data=data)
    return run


def end(tx: Transaction, run: int, outcome: Outcome, detail: str = "", saved: str | None = None) -> Run:
    """Record how it ended. A run ends once."""
    before = get(tx, run)
    if before.outcome is not None:
        raise StateConflict(f"Run {run} has ended already ({before.outcome.value}): look at it again.")
    values = {"ended_at": tx.now, "outcome": outcome, "detail": detail, "saved": saved}
    tx.execute(update(schema.runs).where(_TABLE.id == run).values(values))
    ended = replace(before, ended_at=tx.now, outcome=outcome, detail=detail, saved=saved)
    whose = {"attempt": ended.attempt} if ended.agent is None else {"agent": ended.conversation}
    role = {"role": ended.role} if ended.role else {}
    data = {"run": run, **whose, **role, "outcome": outcome.value, "detail": detail, "saved": saved}
    tx.record(EventKind.RUN_ENDED, project=ended.project, ticket=ended.ticket, data=data)
    return ended


def note_access(tx: Transaction, run: int, access: str) -> None:
    """Record how it reaches its model."""
    tx.execute(update(schema.runs).where(_TABLE.id == run).values(access=access))


def get(tx: ReadTransaction, run: int) -> Run:
    found = _GET.first(tx, wanted=run)
    if found is None:
        raise NotFound(f"There is no run {run}: see `legion ticket N`.")
    return found


def of_ticket(tx: ReadTransaction, ticket: int, role: str | None = None) -> tuple[Run, ...]:
    """Oldest first; of one role (empty: the builder's), or of all."""
    found = select(schema.runs).where(_TABLE.ticket == ticket).order_by(_TABLE.id)
    if role is not None:
        found = found.where(_TABLE.role == role)
    return tuple(Run(**row._mapping) for row in tx.execute(found))


def of_agent(tx: ReadTransaction, agent: int, *, limit: int | None = 50) -> tuple[Run, ...]:
    """The last ones, oldest first; all of them without a limit."""
    found = select(schema.runs).where(_TABLE.agent == agent).order_by(_TABLE.id.desc()).limit(limit)
    return tuple(Run(**row._mapping) for row in tx.execute(found))[::-1]


def of_seat(tx: ReadTransaction, run: Run) -> tuple[Run, ...]:
    """All of the same ticket and role, or the last ones of the same agent, oldest first."""
    return of_ticket(tx, run.ticket, run.role) if run.ticket is not None else of_agent(tx, run.agent or 0)


def latest(tx: ReadTransaction, ticket: int, role: str = "") -> Run | None:
    """The builder's last run, unless another role is named."""
    mine = (_TABLE.ticket == ticket, _TABLE.role == role)
    found = select(schema.runs).where(*mine).order_by(_TABLE.id.desc()).limit(1)
    row = tx.execute(found).one_or_none()
    return None if row is None else Run(**row._mapping)


def at_work(tx: ReadTransaction, ticket: int) -> Run | None:
    """The last run of the builder or an advisor: the subject of the run job."""
    mine = (_TABLE.ticket == ticket, _TABLE.part != RolePart.READ)
    row = tx.execute(select(schema.runs).where(*mine).order_by(_TABLE.id.desc()).limit(1)).one_or_none()
    return None if row is None else Run(**row._mapping)


def has_conversation(tx: ReadTransaction, conversation: str) -> bool:
    found = select(_TABLE.id).where(_TABLE.conversation == conversation).limit(1)
    return tx.execute(found).first() is not None


def active_of(tx: ReadTransaction, ticket: int) -> tuple[Run, ...]:
    """The ticket's runs without a known end, of any role."""
    return tuple(run for run in active(tx) if run.ticket == ticket)


def active(tx: ReadTransaction) -> tuple[Run, ...]:
    """Runs without a known end, oldest first."""
    return _ACTIVE.all(tx)


def _project(tx: ReadTransaction, ticket: int) -> int:
    table = schema.tickets.c
    project: int | None = tx.execute(select(table.project).where(table.id == ticket)).scalar_one_or_none()
    if project is None:
        raise NotFound(f"There is no ticket {ticket}: see `legion status`.")
    return project
