"""What the scheduler looks at, read by a handful of statements that cost no more when many tickets have ended."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import select

from legion.domain.decide import ProjectView, Snapshot
from legion.domain.projects import Project
from legion.store import jobs, landings, projects, runs, schema, tickets
from legion.store.database import ReadTransaction


def load(tx: ReadTransaction, slots: int, parallel: Mapping[int, int]) -> Snapshot:
    """`parallel` says by project how many agents may work at once; a project that it leaves out has all the slots."""
    trusted = {(row.project, row.hash) for row in tx.execute(select(schema.trusted))}
    views = tuple(
        _view(
            project,
            parallel.get(project.id, slots),
            trusted=(project.id, project.config_hash) in trusted,
            landing_begun=bool(landings.open_ones(tx, project.id)),
        )
        for project in projects.all(tx)
    )
    cared_for = {view.id for view in views}
    live = tuple(ticket for ticket in tickets.live(tx) if ticket.project in cared_for)
    before = {other for ticket in live for other in ticket.wish.after} - {ticket.id for ticket in live}
    return Snapshot(
        projects=views,
        tickets=live,
        ended=tickets.states_of(tx, before),
        jobs=frozenset((claim.kind, claim.subject) for claim in jobs.active(tx)),
        slots=slots,
        open_runs=frozenset(run.ticket for run in runs.active(tx)),
    )


def _view(project: Project, parallel: int, *, trusted: bool, landing_begun: bool) -> ProjectView:
    return ProjectView(
        id=project.id,
        parallel=parallel,
        paused=project.paused,
        trusted=trusted,
        baseline_known=project.baseline_known,
        baseline_red=project.baseline_red,
        person_waiting=project.person_waiting,
        landing_begun=landing_begun,
    )
