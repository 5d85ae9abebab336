"""Documents of specifications: one for each stage of a plan's."""

from __future__ import annotations

from sqlalchemy import insert, select

from legion.domain.plans.specification import SpecStage
from legion.store.database import schema
from legion.store.database.transactions import ReadTransaction, Transaction

_TABLE = schema.plan_documents.c


def add(tx: Transaction, plan: int, stage: SpecStage, text: str, run: int) -> None:
    """The table refuses a second document of a stage."""
    values = {"plan": plan, "stage": stage, "text": text, "run": run, "at": tx.now}
    tx.execute(insert(schema.plan_documents), [values])


def runs_of(tx: ReadTransaction, plan: int) -> dict[SpecStage, int]:
    """The run that wrote each document."""
    found = tx.execute(select(_TABLE.stage, _TABLE.run).where(_TABLE.plan == plan))
    return {row.stage: row.run for row in found if row.run is not None}


def of_plan(tx: ReadTransaction, plan: int) -> dict[SpecStage, str]:
    """In the order of the stages."""
    found = {row.stage: row.text for row in tx.execute(select(_TABLE.stage, _TABLE.text).where(_TABLE.plan == plan))}
    return {stage: found[stage] for stage in SpecStage if stage in found}
