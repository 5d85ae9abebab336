"""Runs: attempts at tickets and turns of agents, when they ran, and how they ended."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Sequence
from dataclasses import asdict, replace

from sqlalchemy import bindparam, func, select, update

from legion.domain.agents.agent import Agent
from legion.domain.agents.teams import RolePart
from legion.domain.errors import NotFound, StateConflict
from legion.domain.events import EventKind
from legion.domain.plans.plan import GoalPlan
from legion.domain.runs import PLANNER, Outcome, Run
from legion.store.database import schema
from legion.store.database.fixed_query import FixedQuery, Stored
from legion.store.database.prepared import inserting, new, updating
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.store.work import adoptions, rewinds

_TABLE = schema.runs.c


def _run(row: Stored) -> Run:
    return Run(**vars(row))


_ACTIVE = FixedQuery(select(schema.runs).where(_TABLE.ended_at.is_(None)).order_by(_TABLE.id), _run, remember=None)
_MINE = select(schema.runs).where(_TABLE.ticket == bindparam("mine"))
_OF_TICKET = FixedQuery(_MINE.order_by(_TABLE.id), _run, remember=500)
_LAST_NOT_READING = FixedQuery(
    _MINE.where(_TABLE.part != RolePart.READ).order_by(_TABLE.id.desc()).limit(1), _run, remember=100
)
_LOST = FixedQuery(
    select(func.count().label("many")).where(
        _TABLE.ticket == bindparam("mine"),
        _TABLE.attempt == bindparam("same_attempt"),
        _TABLE.role == bindparam("of_role"),
        _TABLE.outcome == Outcome.LOST,
    ),
    lambda row: int(row.many),
    remember=10,
)
_PROJECT = FixedQuery(
    select(schema.tickets.c.project).where(schema.tickets.c.id == bindparam("wanted")),
    lambda row: int(row.project),
    remember=100,
)
_INSERT = inserting(schema.runs)
_END = updating(schema.runs, _TABLE.id == bindparam("this"), columns=("ended_at", "outcome", "detail", "saved"))
_NOTE_DRIVER = updating(schema.runs, _TABLE.id == bindparam("this"), columns=("driver",))
_GET = FixedQuery(select(schema.runs).where(_TABLE.id == bindparam("wanted")), _run, remember=100)


def start(
    tx: Transaction, ticket: int, attempt: int, role: str = "", part: RolePart = RolePart.BUILD, machine: str = ""
) -> Run:
    """A new run of this attempt. Its generation counts how often the attempt was lost before.

    Each role has a conversation of its own.
    """
    (lost,) = _LOST.all(tx, mine=ticket, same_attempt=attempt, of_role=role)
    generation = 1 + lost
    before = latest(tx, ticket, role)
    carried_on = _carried_on(tx, ticket, role, before)
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
        machine=machine,
    )
    tx.run(_INSERT, asdict(run))
    data = {"run": run.id, "attempt": attempt, "generation": generation, **({"role": role} if role else {})}
    data |= {"machine": machine} if machine else {}
    tx.record(EventKind.RUN_STARTED, project=run.project, ticket=ticket, data=data)
    return run


def _carried_on(tx: Transaction, ticket: int, role: str, before: Run | None) -> str:
    """The conversation that the next run continues; empty where it starts one."""
    if before is not None:
        rewound = rewinds.after_run(tx, before.id)
        return before.conversation if rewound is None else rewound.conversation
    adopted = None if role else adoptions.of_ticket(tx, ticket)
    return "" if adopted is None else adopted.conversation


def start_turn(tx: Transaction, agent: Agent, prompt: str) -> Run:
    """A turn of a standing agent. Its generation counts how many before it were lost in a row."""
    lost = _lost_at_the_end(of_agent(tx, agent.number))
    run = Run(
        id=tx.next("run"),
        project=agent.project,
        agent=agent.number,
        generation=1 + lost,
        started_at=tx.now,
        conversation=agent.id,
        prompt=prompt,
    )
    tx.run(_INSERT, asdict(run))
    data = {"run": run.id, "agent": agent.id, "name": agent.name, "generation": run.generation}
    tx.record(EventKind.RUN_STARTED, project=run.project, data=data)
    return run


def start_planning(tx: Transaction, plan: GoalPlan, machine: str = "") -> Run:
    """A round of a plan's planner. Its generation counts how many before it were lost in a row."""
    lost = _lost_at_the_end(of_plan(tx, plan.id))
    run = Run(
        id=tx.next("run"),
        project=plan.project,
        plan=plan.id,
        role=PLANNER,
        part=RolePart.READ,
        generation=1 + lost,
        started_at=tx.now,
        conversation=plan.conversation,
        machine=machine,
    )
    tx.run(_INSERT, asdict(run))
    data = {"run": run.id, "plan": plan.id, "generation": run.generation}
    tx.record(EventKind.RUN_STARTED, project=run.project, data=data)
    return run


def start_ask(tx: Transaction, project: int, role: str) -> Run:
    """A question to a finished conversation, as an entry in the books: it counts as ended from its start, so nothing
    waits for it, adopts it or gives it a slot."""
    run = Run(
        id=tx.next("run"),
        project=project,
        role=role,
        part=RolePart.READ,
        started_at=tx.now,
        ended_at=tx.now,
        outcome=Outcome.FINISHED,
        conversation=str(uuid.uuid4()),
    )
    tx.run(_INSERT, asdict(run))
    return run


def end_ask(tx: Transaction, run: int) -> None:
    tx.execute(update(schema.runs).where(_TABLE.id == run).values(ended_at=tx.now))


def _lost_at_the_end(runs: Sequence[Run]) -> int:
    """How many of the last runs were lost in a row."""
    lost = itertools.takewhile(lambda run: run.outcome is Outcome.LOST, reversed(runs))
    return sum(1 for _ in lost)


def end(tx: Transaction, run: int, outcome: Outcome, detail: str = "", saved: str | None = None) -> Run:
    """Record how it ended. A run ends once."""
    before = get(tx, run)
    if before.outcome is not None:
        raise StateConflict(f"Run {run} has ended already ({before.outcome.value}): look at it again.")
    values = {"ended_at": tx.now, "outcome": outcome, "detail": detail, "saved": saved}
    tx.run(_END, {"this": run, **new(values)})
    ended = replace(before, ended_at=tx.now, outcome=outcome, detail=detail, saved=saved)
    whose: dict[str, object] = {"attempt": ended.attempt}
    if ended.agent is not None:
        whose = {"agent": ended.conversation}
    elif ended.plan is not None:
        whose = {"plan": ended.plan}
    role = {"role": ended.role} if ended.role else {}
    data = {"run": run, **whose, **role, "outcome": outcome.value, "detail": detail, "saved": saved}
    tx.record(EventKind.RUN_ENDED, project=ended.project, ticket=ended.ticket, data=data)
    return ended


def note_driver(tx: Transaction, run: int, driver: str) -> None:
    """Which agent program works, for the report of costs."""
    tx.run(_NOTE_DRIVER, {"this": run, **new({"driver": driver})})


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
    return tuple(run for run in _OF_TICKET.all(tx, mine=ticket) if role in (None, run.role))


def of_agent(tx: ReadTransaction, agent: int, *, limit: int | None = 50) -> tuple[Run, ...]:
    """The last ones, oldest first; all of them without a limit."""
    found = select(schema.runs).where(_TABLE.agent == agent).order_by(_TABLE.id.desc()).limit(limit)
    return tuple(Run(**row._mapping) for row in tx.execute(found))[::-1]


def of_plan(tx: ReadTransaction, plan: int) -> tuple[Run, ...]:
    """Oldest first."""
    found = select(schema.runs).where(_TABLE.plan == plan).order_by(_TABLE.id)
    return tuple(Run(**row._mapping) for row in tx.execute(found))


def of_seat(tx: ReadTransaction, run: Run) -> tuple[Run, ...]:
    """All of the same ticket and role, of the same plan, or the last ones of the same agent, oldest first."""
    if run.plan is not None:
        return of_plan(tx, run.plan)
    return of_ticket(tx, run.ticket, run.role) if run.ticket is not None else of_agent(tx, run.agent or 0)


def latest(tx: ReadTransaction, ticket: int, role: str = "") -> Run | None:
    """The builder's last run, unless another role is named."""
    found = of_ticket(tx, ticket, role)
    return found[-1] if found else None


def at_work(tx: ReadTransaction, ticket: int) -> Run | None:
    """The last run of the builder or an advisor: the subject of the run job."""
    return _LAST_NOT_READING.first(tx, mine=ticket)


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
    project = _PROJECT.first(tx, wanted=ticket)
    if project is None:
        raise NotFound(f"There is no ticket {ticket}: see `legion status`.")
    return project


def renew_conversation(tx: Transaction, run: int) -> None:
    """Call it before the run's program starts, or it would have two."""
    mine = update(schema.runs).where(schema.runs.c.id == run)
    tx.execute(mine.values(conversation=str(uuid.uuid4())))
