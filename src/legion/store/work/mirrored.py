"""Rows of the head that a machine needs a copy of, under the head's numbers: the projects and runs of its jobs."""

from __future__ import annotations

from dataclasses import asdict

from sqlalchemy import insert, select, update

from legion.domain.projects import Project
from legion.domain.runs import Run
from legion.store.database import schema
from legion.store.database.transactions import Transaction


def put_project(tx: Transaction, project: Project) -> None:
    """As it is now on the head."""
    known = tx.execute(select(schema.projects.c.id).where(schema.projects.c.id == project.id)).first()
    values = asdict(project)
    if known is None:
        tx.execute(insert(schema.projects), [values])
    else:
        del values["id"]
        tx.execute(update(schema.projects).where(schema.projects.c.id == project.id).values(values))


def put_run(tx: Transaction, run: Run) -> None:
    """Once: what became of it here is not overwritten."""
    known = tx.execute(select(schema.runs.c.id).where(schema.runs.c.id == run.id)).first()
    if known is None:
        tx.execute(insert(schema.runs), [asdict(run)])
