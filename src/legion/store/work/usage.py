"""Spending of runs, from the gateway's ledger or the program's own report, and the providers' last known limits.

The position in the ledger moves in the transaction that stores what was read, so every line counts once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import Row, bindparam, func, insert, literal_column, select, update

from legion.domain.plans.plan import PlanState
from legion.domain.scheduling.budgets import EpicSpending
from legion.domain.scheduling.usage import (
    AgentSpending,
    AttemptFate,
    ProviderLimit,
    RunUsage,
    Spending,
    Usage,
    fate,
    since,
    total,
)
from legion.domain.tickets.ticket import State
from legion.store.database import schema
from legion.store.database.fixed_query import FixedQuery, Stored
from legion.store.database.prepared import new, updating
from legion.store.database.transactions import ReadTransaction, Transaction

_TABLE = schema.usage.c
_COUNTS = tuple(Usage.__dataclass_fields__)
_REPORTS = schema.usage_reports.c
_SUMS = schema.spending_sums.c
_OF_WORK = _SUMS.kind.in_(("epic", "plan"))
"""Each part of all work is in one of these sums: that of a plan, or that of an epic, which has no name for the rest."""
_REPORTED = ("input", "output", "cache_read", "cache_write", "usd")
JournalPlace = tuple[int, int]
"""A run, and the number of an event in its journal."""


def add(tx: Transaction, spending: Iterable[Spending]) -> None:
    """Add to what is known of the same run, provider, model and day."""
    for one in spending:
        same = (
            _TABLE.run == one.run,
            _TABLE.provider == one.provider,
            _TABLE.model == one.model,
            _TABLE.day == one.day,
        )
        row = tx.execute(select(schema.usage).where(*same)).one_or_none()
        if row is None:
            facts = {"run": one.run, "provider": one.provider, "model": one.model, "day": one.day}
            tx.execute(insert(schema.usage), [facts | _values(one.usage)])
        else:
            tx.execute(update(schema.usage).where(*same).values(_values(_usage(row) + one.usage)))
        _add_to_sums(tx, one)


def _add_to_sums(tx: Transaction, spent: Spending) -> None:
    """To that of its epic or plan on this day, and to that of the standing agent whose turn it was, or that started
    the ticket or the planner."""
    runs, given = schema.runs.c, func.coalesce(schema.tickets.c.dispatcher, schema.plans.c.dispatcher, "")
    run = tx.execute(
        select(runs.project, runs.plan, runs.agent, runs.conversation, schema.tickets.c.epic, given.label("dispatcher"))
        .select_from(
            schema.runs.outerjoin(schema.tickets, schema.tickets.c.id == runs.ticket).outerjoin(
                schema.plans, schema.plans.c.id == runs.plan
            )
        )
        .where(runs.id == spent.run)
    ).one_or_none()
    if run is None:
        return
    place = {"kind": "epic", "name": run.epic or ""} if run.plan is None else {"kind": "plan", "name": str(run.plan)}
    keys = [{**place, "project": run.project, "day": spent.day}]
    kind, agent = ("own", run.conversation) if run.agent is not None else ("given", run.dispatcher)
    if agent:
        keys.append({"kind": kind, "project": 0, "name": agent, "day": ""})
    for key in keys:
        more = {name: _SUMS[name] + value for name, value in _values(spent.usage).items()}
        if tx.execute(update(schema.spending_sums).filter_by(**key).values(more)).rowcount == 0:
            tx.execute(insert(schema.spending_sums), [key | _values(spent.usage)])


def count_from_zero(tx: Transaction, conversation: str, at: JournalPlace) -> None:
    """A new conversation began under this name at this place of a journal, and its program counts from zero."""
    for model, (last, _) in _reports(tx, conversation).items():
        if last < at:
            _keep_report(tx, conversation, model, at, Usage())


def add_report(tx: Transaction, conversation: str, at: JournalPlace, reported: Spending) -> None:
    """Add what a program newly counted: the difference to its last report. A report that was read before adds nothing.

    Its requests and times are no sums, so they count as they are.
    """
    last, known = _reports(tx, conversation).get(reported.model, (None, Usage()))
    if last is not None and at <= last:
        return
    add(tx, [replace(reported, usage=since(reported.usage, known))])
    _keep_report(tx, conversation, reported.model, at, reported.usage)


def _reports(tx: ReadTransaction, conversation: str) -> dict[str, tuple[JournalPlace, Usage]]:
    """The last report of each model, and its place."""
    rows = tx.execute(select(schema.usage_reports).where(_REPORTS.conversation == conversation))
    return {
        row.model: ((row.run, row.event), Usage(**{name: getattr(row, name) for name in _REPORTED})) for row in rows
    }


def _keep_report(tx: Transaction, conversation: str, model: str, at: JournalPlace, reported: Usage) -> None:
    values = {"run": at[0], "event": at[1], **{name: getattr(reported, name) for name in _REPORTED}}
    same = (_REPORTS.conversation == conversation, _REPORTS.model == model)
    if tx.execute(update(schema.usage_reports).where(*same).values(values)).rowcount == 0:
        tx.execute(insert(schema.usage_reports), [{"conversation": conversation, "model": model, **values}])


def of_runs(tx: ReadTransaction, runs: Iterable[int]) -> Mapping[int, Usage]:
    """What each run spent in all; runs that spent nothing are left out."""
    found: dict[int, Usage] = {}
    for row in tx.execute(select(schema.usage).where(_TABLE.run.in_(tuple(runs)))):
        found[row.run] = found.get(row.run, Usage()) + _usage(row)
    return found


def models_of(tx: ReadTransaction, runs: Iterable[int]) -> Mapping[int, str]:
    """The model that each run used most; runs that used none are left out."""
    size = _TABLE.input + _TABLE.output + _TABLE.cache_read + _TABLE.cache_write
    found = select(_TABLE.run, _TABLE.model).where(_TABLE.run.in_(tuple(runs)), _TABLE.model != "").order_by(size)
    return {row.run: row.model for row in tx.execute(found)}


def of_ticket(tx: ReadTransaction, ticket: int) -> Usage:
    """What all runs of a ticket spent."""
    return total(_OF_TICKET.all(tx, mine=ticket))


def of_project(tx: ReadTransaction, project: int | None) -> Usage:
    """What a project spent, or all projects: tickets, dropped ones too, planners, standing agents and questions."""
    found = select(schema.spending_sums).where(_OF_WORK)
    if project is not None:
        found = found.where(_SUMS.project == project)
    return total(_usage(row) for row in tx.execute(found))


def of_agent(tx: ReadTransaction, agent: int) -> Usage:
    """What all turns of an agent spent."""
    runs = select(schema.runs.c.id).where(schema.runs.c.agent == agent)
    return total(_usage(row) for row in tx.execute(select(schema.usage).where(_TABLE.run.in_(runs))))


def of_plan(tx: ReadTransaction, plan: int) -> Usage:
    """What all runs of a plan's planner spent."""
    runs = select(schema.runs.c.id).where(schema.runs.c.plan == plan)
    return total(_usage(row) for row in tx.execute(select(schema.usage).where(_TABLE.run.in_(runs))))


def by_agents(tx: ReadTransaction) -> Mapping[str, AgentSpending]:
    """What every standing agent spent, fired ones included."""
    found: dict[str, AgentSpending] = {}
    for row in tx.execute(select(_SUMS.kind, _SUMS.name, _SUMS.usd).where(_SUMS.kind.in_(("own", "given")))):
        found[row.name] = replace(found.get(row.name, AgentSpending()), **{row.kind: row.usd})
    return found


def reserved(tx: ReadTransaction) -> Mapping[str, float]:
    """Dollars that agents gave to tickets and planners which may still run, and which these have not spent yet."""
    tickets, plans = schema.tickets.c, schema.plans.c
    at_work = plans.state.in_((PlanState.PLANNING, PlanState.ASKING))
    found: dict[str, float] = {}
    for owner, id, run, lives in (
        (tickets, tickets.id, schema.runs.c.ticket, tickets.live == literal_column("1")),
        (plans, plans.id, schema.runs.c.plan, at_work),
    ):
        spent = (
            select(func.coalesce(func.sum(_TABLE.usd), 0.0))
            .join(schema.runs, schema.runs.c.id == _TABLE.run)
            .where(run == id)
            .scalar_subquery()
        )
        given = (owner.dispatcher != "", owner.budget.is_not(None), lives)
        for row in tx.execute(select(owner.dispatcher, owner.budget, spent.label("usd")).where(*given)):
            found[row.dispatcher] = found.get(row.dispatcher, 0.0) + max(0.0, row.budget - row.usd)
    return found


def work(tx: ReadTransaction, project: int | None = None, *, since: float | None = None) -> tuple[RunUsage, ...]:
    """Every run and turn, those of dropped tickets and fired agents included: their money is spent too.

    `since`: only those that had not ended then.
    """
    table, ticket = schema.runs.c, schema.tickets.c
    found = select(
        table.id, table.ticket, table.plan, table.role, table.driver, table.attempt, table.started_at, table.ended_at,
        ticket.title, ticket.epic, ticket.state, ticket.live, ticket.attempt.label("latest"),
        schema.agents.c.name, schema.agents.c.role.label("post"), schema.projects.c.name.label("place"),
        schema.plans.c.epic.label("planned"),
    ).select_from(
        schema.runs.outerjoin(schema.tickets, ticket.id == table.ticket)
        .outerjoin(schema.plans, schema.plans.c.id == table.plan)
        .outerjoin(schema.agents, schema.agents.c.number == table.agent)
        .join(schema.projects, schema.projects.c.id == table.project)
    )  # fmt: skip
    # No agent works on a ticket that reverts another.
    found = found.where(ticket.undoes.is_(None))
    if project is not None:
        found = found.where(table.project == project)
    if since is not None:
        # Each half of this is a walk along the index of ends.
        found = found.where(
            table.id.in_(
                select(table.id)
                .where(table.ended_at.is_(None))
                .union_all(select(table.id).where(table.ended_at >= since))
            )
        )
    return tuple(_work(row) for row in tx.execute(found.order_by(table.id)))


def _work(row: Row[Any]) -> RunUsage:
    run = {"run": row.id, "driver": row.driver, "started_at": row.started_at, "ended_at": row.ended_at}
    run["project"] = row.place
    if row.ticket is None:
        run["role"] = row.role or row.post or "standing agent"
        agent = f"planner of P{row.plan}" if row.plan is not None else row.name or row.role
        return RunUsage(**run, ticket=None, title="", epic=_epic(row), agent=agent, fate=AttemptFate.NONE)
    run["role"] = row.role or "builder"
    became = fate(attempt=row.attempt, latest=row.latest, done=row.state is State.DONE, live=row.live)
    # An advisor or reviewer is an agent of its own.
    agent = f"{row.role or 'agent'} of ticket {row.ticket}"
    return RunUsage(**run, ticket=row.ticket, title=row.title, epic=row.epic, agent=agent, fate=became)


def spending(
    tx: ReadTransaction, project: int | None = None, *, since: str = "", first: int = 0
) -> tuple[Spending, ...]:
    """What every run spent, by model and day. `since`: on this day and later. `first`: of this run and later ones."""
    found = select(schema.usage)
    if project is not None:
        mine = select(schema.runs.c.id).where(schema.runs.c.project == project, schema.runs.c.id >= first)
        found = found.where(_TABLE.run.in_(mine))
    if since:
        found = found.where(_TABLE.day >= since)
    if first:
        found = found.where(_TABLE.run >= first)
    return tuple(
        Spending(run=row.run, provider=row.provider, model=row.model, day=row.day, usage=_usage(row))
        for row in tx.execute(found.order_by(_TABLE.run, _TABLE.provider, _TABLE.model, _TABLE.day))
    )


def spent(tx: ReadTransaction) -> tuple[EpicSpending, ...]:
    """What was spent in all, by project, epic and day. A planner belongs to the epic of its plan, turns of standing
    agents and questions to none."""
    planned = {str(row.id): row.epic for row in tx.execute(select(schema.plans.c.id, schema.plans.c.epic))}
    return tuple(
        EpicSpending(
            project=row.project,
            epic=row.name if row.kind == "epic" else planned.get(row.name) or f"P{row.name}",
            day=row.day,
            usd=row.usd,
        )
        for row in tx.execute(select(schema.spending_sums).where(_OF_WORK))
    )


def _epic(row: Row[Any]) -> str:
    return (row.planned or f"P{row.plan}") if row.plan is not None else row.epic or ""


def read_up_to(tx: ReadTransaction, source: str) -> tuple[str, int]:
    """How far a source was read: a file's name and an offset."""
    return _READ_UP_TO.first(tx, of_source=source) or ("", 0)


def have_read(tx: Transaction, source: str, file: str, place: int) -> None:
    if tx.run(_HAVE_READ, {"of_source": source, **new({"file": file, "place": place})}) == 0:
        tx.execute(insert(schema.read_positions), [{"source": source, "file": file, "place": place}])


def note_limit(tx: Transaction, limit: ProviderLimit) -> None:
    """The last report of each provider counts."""
    facts = {
        "at": limit.at,
        "status": limit.status,
        "span": limit.span,
        "utilization": limit.utilization,
        "resets_at": limit.resets_at,
    }
    same = schema.limits.c.provider == limit.provider
    if tx.execute(update(schema.limits).where(same).values(facts)).rowcount == 0:
        tx.execute(insert(schema.limits), [{"provider": limit.provider, **facts}])


def limits(tx: ReadTransaction) -> Mapping[str, ProviderLimit]:
    """The last report of each provider."""
    return {limit.provider: limit for limit in _LIMITS.all(tx)}


def _values(usage: Usage) -> dict[str, Any]:
    return {name: getattr(usage, name) for name in _COUNTS}


def _usage(row: Stored) -> Usage:
    return Usage(**{name: getattr(row, name) for name in _COUNTS})


_OF_TICKET = FixedQuery(
    select(schema.usage).where(
        _TABLE.run.in_(select(schema.runs.c.id).where(schema.runs.c.ticket == bindparam("mine")))
    ),
    _usage,
    remember=100,
)
_LIMITS = FixedQuery(select(schema.limits), lambda row: ProviderLimit(**vars(row)), remember=None)
_READ_UP_TO = FixedQuery(
    select(schema.read_positions).where(schema.read_positions.c.source == bindparam("of_source")),
    lambda row: (str(row.file), int(row.place)),
    remember=10,
)
_HAVE_READ = updating(
    schema.read_positions, schema.read_positions.c.source == bindparam("of_source"), columns=("file", "place")
)
