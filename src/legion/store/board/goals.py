"""Plans of goals: their rows and rounds, and the tickets that approved ones became."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from sqlalchemy import Row, bindparam, delete, func, insert, literal_column, select, update

from legion.domain.errors import NotFound, StateConflict
from legion.domain.events import EventKind
from legion.domain.plans import draft
from legion.domain.plans.answer import GoalPoint, PointState
from legion.domain.plans.checks import FindingKind, PlanFinding, ProofTrial
from legion.domain.plans.plan import OFFERS, GoalPlan, LandedTicket, PastEstimate, PlanAuthor, PlanEstimate, PlanState
from legion.domain.plans.specification import SpecStage, last_of
from legion.domain.tickets.ticket import State
from legion.store.database import schema
from legion.store.database.fixed_query import FixedQuery
from legion.store.database.transactions import ReadTransaction, Transaction

_TABLE = schema.plans.c
_ROUNDS = schema.plan_rounds.c
_TICKETS = schema.plan_tickets.c
_ORIGIN = FixedQuery(
    select(_TICKETS.plan, _TICKETS.key).where(_TICKETS.ticket == bindparam("mine")),
    lambda row: (int(row.plan), str(row.key)),
    remember=100,
)
_HISTORY = 50
"""Landed tickets that an estimate looks at."""
_LONGEST_MESSAGE = 20_000


@dataclass(frozen=True, kw_only=True)
class PlanRound:
    """One draft of a plan, or an answer that held none."""

    number: int
    author: PlanAuthor
    run: int | None
    usable: bool
    findings: tuple[PlanFinding, ...]
    message: str
    """Why it is not usable, or what the person asked for."""
    at: float


def create(tx: Transaction, plan: GoalPlan) -> GoalPlan:
    """Store a new plan under the next number."""
    made = replace(
        plan, id=tx.next("plan"), version=1, conversation=str(uuid.uuid4()), created_at=tx.now, moved_at=tx.now
    )
    tx.execute(insert(schema.plans), [_values(made)])
    data = {"plan": made.id, "goal": made.goal[:200], "state": made.state.value, "source": made.source.value}
    tx.record(EventKind.PLAN_CREATED, project=made.project, data=data)
    return made


def save(tx: Transaction, before: GoalPlan, after: GoalPlan) -> GoalPlan:
    """Store a move of the plan. Raises StateConflict if it moved since `before` was read."""
    moved = replace(after, version=before.version + 1, moved_at=tx.now)
    same = (_TABLE.id == before.id, _TABLE.version == before.version)
    if tx.execute(update(schema.plans).where(*same).values(_values(moved))).rowcount == 0:
        raise StateConflict(f"{before.name} changed meanwhile. See `legion plan show {before.name}`.")
    data = {"plan": moved.id, "from": before.state.value, "to": moved.state.value, "round": moved.rounds}
    data |= {"findings": len(moved.findings), "reason": moved.reason}
    tx.record(EventKind.PLAN_MOVED, project=moved.project, data=data)
    return moved


def record_round(
    tx: Transaction,
    plan: GoalPlan,
    author: PlanAuthor,
    *,
    usable: bool = True,
    message: str = "",
    run: int | None = None,
    findings: Iterable[PlanFinding] = (),
) -> None:
    """The round that the plan counts as its last."""
    values = {"plan": plan.id, "number": plan.rounds, "author": author, "run": run, "usable": usable, "at": tx.now}
    more = {"findings": _findings_json(findings), "message": message[:_LONGEST_MESSAGE]}
    tx.execute(insert(schema.plan_rounds), [values | more])


def get(tx: ReadTransaction, plan: int) -> GoalPlan:
    row = tx.execute(select(schema.plans).where(_TABLE.id == plan)).one_or_none()
    if row is None:
        raise NotFound(f"There is no plan P{plan}: see `legion plan list`.")
    return _plan(row)


def of_project(tx: ReadTransaction, project: int) -> tuple[GoalPlan, ...]:
    """Oldest first."""
    found = select(schema.plans).where(_TABLE.project == project).order_by(_TABLE.id)
    return tuple(_plan(row) for row in tx.execute(found))


def of_epic(tx: ReadTransaction, project: int, epic: str) -> list[GoalPlan]:
    """Those whose tickets belong to the epic, oldest first."""
    return [one for one in of_project(tx, project) if (one.epic or one.name) == epic]


def being_planned(tx: ReadTransaction) -> tuple[GoalPlan, ...]:
    """Those that need a planner now: the questions of none of them are open."""
    found = _WITH_PLANNER.all(tx)
    keys = {key for plan in found if plan.state is PlanState.ASKING for key in plan.asked}
    asked = schema.questions.c
    still = select(asked.key).where(asked.key.in_(keys), asked.settled_at.is_(None))
    waiting = set(tx.execute(still).scalars()) if keys else set()
    return tuple(one for one in found if one.state is PlanState.PLANNING or waiting.isdisjoint(one.asked))


def unread(tx: ReadTransaction) -> tuple[GoalPlan, ...]:
    """Those whose goal is held against what landed, once all their tickets have ended."""
    return _UNREAD.all(tx)


def was_taken_up(tx: Transaction, plans: Iterable[GoalPlan]) -> None:
    """A reader of these goals was stored."""
    there = _TABLE.id.in_([one.id for one in plans])
    tx.execute(update(schema.plans).where(there).values(reads=False, version=_TABLE.version + 1))


def undecided(tx: ReadTransaction, project: int | None = None, *, failed: bool = False) -> tuple[GoalPlan, ...]:
    """Plans that wait for the person, oldest first; with `failed` also those whose planner gave up."""
    states = OFFERS["approve_plan"] - {PlanState.PARTLY} | ({PlanState.FAILED} if failed else set())
    found = select(schema.plans).where(_TABLE.state.in_(states))
    if project is not None:
        found = found.where(_TABLE.project == project)
    return tuple(_plan(row) for row in tx.execute(found.order_by(_TABLE.id)))


def rounds(tx: ReadTransaction, plan: int) -> tuple[PlanRound, ...]:
    columns = [one for one in _ROUNDS if one.name != "plan"]
    found = tx.execute(select(*columns).where(_ROUNDS.plan == plan).order_by(_ROUNDS.number))
    return tuple(PlanRound(**{**row._mapping, "findings": _findings(row.findings)}) for row in found)


def dispatch(tx: Transaction, plan: int, tickets: Mapping[str, int], each: PlanEstimate) -> None:
    """Record which ticket each key became. A key becomes a ticket once: the table refuses a second."""
    rows = [
        {"plan": plan, "key": key, "ticket": ticket, "usd": each.usd_each, "seconds": each.seconds_each, "at": tx.now}
        for key, ticket in tickets.items()
    ]
    tx.execute(insert(schema.plan_tickets), rows)


def dispatched(tx: ReadTransaction, plan: int) -> dict[str, int]:
    """The approved tickets: their numbers by key."""
    found = select(_TICKETS.key, _TICKETS.ticket).where(_TICKETS.plan == plan).order_by(_TICKETS.ticket)
    return {row.key: row.ticket for row in tx.execute(found)}


def origin_of(tx: ReadTransaction, ticket: int) -> tuple[int, str] | None:
    """The plan that a ticket comes from, and its key there."""
    return _ORIGIN.first(tx, mine=ticket)


def landed(tx: ReadTransaction, project: int) -> tuple[LandedTicket, ...]:
    """What the last landed tickets of the project took."""
    return tuple(_took(tx, project).values())


def past_estimates(tx: ReadTransaction, project: int) -> tuple[PastEstimate, ...]:
    took = _took(tx, project)
    found = select(schema.plan_tickets).where(_TICKETS.ticket.in_(took), _TICKETS.usd.is_not(None))
    return tuple(PastEstimate(usd=row.usd, seconds=row.seconds, took=took[row.ticket]) for row in tx.execute(found))


def _took(tx: ReadTransaction, project: int) -> dict[int, LandedTicket]:
    ticket, run, usage = schema.tickets.c, schema.runs.c, schema.usage.c
    last = (
        select(ticket.id, ticket.moved_at)
        .where(ticket.project == project, ticket.state == State.DONE, ticket.checkpoint == 0)
        .where(ticket.undoes.is_(None))
        .order_by(ticket.moved_at.desc())
        .limit(_HISTORY)
    )
    ended = {row.id: row.moved_at for row in tx.execute(last)}
    starts = select(run.ticket, func.min(run.started_at).label("at")).where(run.ticket.in_(ended)).group_by(run.ticket)
    began = {row.ticket: row.at for row in tx.execute(starts)}
    costs = (
        select(run.ticket, func.sum(usage.usd).label("usd"))
        .join(schema.usage, usage.run == run.id)
        .where(run.ticket.in_(ended))
        .group_by(run.ticket)
    )
    spent = {row.ticket: row.usd for row in tx.execute(costs)}
    return {
        number: LandedTicket(usd=float(spent.get(number, 0.0)), seconds=max(0.0, at - began[number]))
        for number, at in ended.items()
        if number in began
    }


def _values(plan: GoalPlan) -> dict[str, Any]:
    values = asdict(replace(plan, draft=None, findings=()))
    more = {name: values.pop(name) for name in ("trials", "points")}
    more["points"] = [one | {"state": one["state"].value} for one in more["points"]]
    whole = {**(draft.record(plan.draft) if plan.draft else {}), **{name: one for name, one in more.items() if one}}
    return values | {"draft": whole or None, "findings": _findings_json(plan.findings), "asked": list(plan.asked)}


def _plan(row: Row[Any]) -> GoalPlan:
    return _made(row._asdict())


def _made(values: Mapping[str, Any]) -> GoalPlan:
    drafted = dict(values["draft"] or {})
    trials, points = drafted.pop("trials", {}), drafted.pop("points", [])
    read = {
        "draft": draft.read(drafted) if drafted else None,
        "trials": {command: ProofTrial(**one) for command, one in trials.items()},
        "points": tuple(GoalPoint(**{**one, "state": PointState(one["state"])}) for one in points),
        "findings": _findings(values["findings"]),
        "asked": tuple(values["asked"]),
    }
    return GoalPlan(**{**values, **read})


_WITH_PLANNER = FixedQuery(
    select(schema.plans).where(literal_column("state IN ('planning', 'asking')")).order_by(_TABLE.id),
    lambda row: _made(vars(row)),
    remember=100,
)

_UNREAD = FixedQuery(
    select(schema.plans).where(literal_column("reads = 1")).order_by(_TABLE.id),
    lambda row: _made(vars(row)),
    remember=100,
)


def _findings_json(found: Iterable[PlanFinding]) -> list[list[str]]:
    return [[one.kind.value, one.ticket, one.text] for one in found]


def _findings(stored: Iterable[Iterable[str]]) -> tuple[PlanFinding, ...]:
    return tuple(
        PlanFinding(kind=FindingKind(kind), ticket=ticket, text=text) for kind, ticket, text in map(tuple, stored)
    )


# Documents of specifications: one for each stage of a plan's.

_SPECIFICATIONS = schema.plan_documents.c


def add_document(tx: Transaction, plan: int, stage: SpecStage, text: str, run: int) -> None:
    """The table refuses a second document of a stage."""
    values = {"plan": plan, "stage": stage, "text": text, "run": run, "at": tx.now}
    tx.execute(insert(schema.plan_documents), [values])


def rewrite(tx: Transaction, plan: int, text: str) -> None:
    """The person's own text takes the place of the specification."""
    mine = (_SPECIFICATIONS.plan == plan, _SPECIFICATIONS.stage == last_of(documents_of(tx, plan)))
    tx.execute(update(schema.plan_documents).where(*mine).values(text=text, at=tx.now))


def criticise_again(tx: Transaction, plan: int) -> None:
    """What the last critic wrote, or the person, is what the next one corrects."""
    of_plan = _SPECIFICATIONS.plan == plan
    if SpecStage.CRITICISE in documents_of(tx, plan):
        tx.execute(delete(schema.plan_documents).where(of_plan, _SPECIFICATIONS.stage == SpecStage.WRITE))
        last = update(schema.plan_documents).where(of_plan, _SPECIFICATIONS.stage == SpecStage.CRITICISE)
        tx.execute(last.values(stage=SpecStage.WRITE))


def document_runs(tx: ReadTransaction, plan: int) -> dict[SpecStage, int]:
    """The run that wrote each document."""
    found = tx.execute(select(_SPECIFICATIONS.stage, _SPECIFICATIONS.run).where(_SPECIFICATIONS.plan == plan))
    return {row.stage: row.run for row in found if row.run is not None}


def documents_of(tx: ReadTransaction, plan: int) -> dict[SpecStage, str]:
    """In the order of the stages."""
    found = {
        row.stage: row.text
        for row in tx.execute(select(_SPECIFICATIONS.stage, _SPECIFICATIONS.text).where(_SPECIFICATIONS.plan == plan))
    }
    return {stage: found[stage] for stage in SpecStage if stage in found}
