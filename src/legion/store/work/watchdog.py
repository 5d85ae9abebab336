"""The watchdog's observations of live runs, and its interventions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from sqlalchemy import delete, insert, select, update

from legion.domain.events import EventKind
from legion.domain.runs import Run
from legion.domain.watchdog.activity import Observation
from legion.domain.watchdog.diagnosis import Intervention, WatchdogStep
from legion.store.database import schema
from legion.store.database.fixed_query import QueryByIds
from legion.store.database.transactions import ReadTransaction, Transaction

_OBSERVATIONS = schema.observations.c
_INTERVENTIONS = schema.interventions.c
_OF_RUNS = QueryByIds(
    select(schema.interventions).order_by(_INTERVENTIONS.run, _INTERVENTIONS.number),
    _INTERVENTIONS.run,
    lambda row: Intervention(**vars(row)),
    remember=100,
)


def observations(tx: ReadTransaction, runs: Iterable[int]) -> dict[int, Observation]:
    found = select(schema.observations).where(_OBSERVATIONS.run.in_(list(runs)))
    return {row.run: Observation(**row._mapping) for row in tx.execute(found)}


def keep(tx: Transaction, watch: Observation) -> None:
    tx.execute(delete(schema.observations).where(_OBSERVATIONS.run == watch.run))
    tx.execute(insert(schema.observations), [asdict(watch)])


def interventions(tx: ReadTransaction, runs: Iterable[int]) -> dict[int, tuple[Intervention, ...]]:
    """The interventions in each run, oldest first; runs without any are left out."""
    by_run: dict[int, tuple[Intervention, ...]] = {}
    for one in _OF_RUNS.all(tx, runs):
        by_run[one.run] = (*by_run.get(one.run, ()), one)
    return by_run


def note(tx: Transaction, run: Run, wanted: Intervention) -> Intervention:
    """Record that the intervention is about to happen, with its event. The table refuses a repeated number."""
    tx.execute(insert(schema.interventions), [asdict(wanted)])
    data: dict[str, object] = {
        "run": run.id,
        "step": wanted.action.value,
        "why": wanted.why,
        "rule": wanted.rule.value,
        **({"agent": run.conversation} if run.agent is not None else {}),
    }
    tx.record(EventKind.WATCHDOG_STEP, project=run.project, ticket=run.ticket, data=data)
    return wanted


def taken(tx: Transaction, one: Intervention, *, after: int) -> None:
    """The intervention reached the run, after this event of its journal."""
    mine = update(schema.interventions).where(_INTERVENTIONS.run == one.run, _INTERVENTIONS.number == one.number)
    tx.execute(mine.values(taken_at=tx.now, after=after))


def ended_by(tx: ReadTransaction, run: int) -> Intervention | None:
    """The intervention that ended the run, if one did."""
    last = interventions(tx, [run]).get(run, ())[-1:]
    return last[0] if last and last[0].action is WatchdogStep.END else None
