"""Which jobs may run on machines, and the labels that roles ask for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from legion.config.files.project import ProjectConfig
from legion.domain.agents.teams import Crew, TeamStage
from legion.domain.scheduling.job_kinds import JobKind
from legion.domain.tickets.ticket import State, Ticket
from legion.jobs.agent import model_access, teams
from legion.jobs.trees import Trees
from legion.store.board import crews, verdicts
from legion.store.database.transactions import ReadTransaction

TRAVELS = frozenset({JobKind.RUN, JobKind.REVIEW, JobKind.PLAN})
"""The jobs whose runner may be on a machine."""
_NEEDS_NO_MODEL = frozenset({JobKind.RUN})
"""Those of them that may work without a model: a ticket's own command."""


def travels(context: Trees) -> frozenset[JobKind]:
    """The person's own login stays on the head, and so do reviews and plans where it is the only access to a model."""
    try:
        access = model_access.choose(context, "")
    except model_access.NoModelAccess:
        return _NEEDS_NO_MODEL
    return _NEEDS_NO_MODEL if isinstance(access, model_access.OwnLogin) else TRAVELS


def staying(context: Trees, configs: Mapping[int, ProjectConfig]) -> frozenset[int]:
    """Projects with git filters: what those need is in the person's repository, which no machine has."""
    found = (context.project(project) for project in configs)
    return frozenset(project.id for project in found if project.hub.filters(project.target) is not None)


def role_labels(tx: ReadTransaction, live: Iterable[Ticket]) -> dict[tuple[JobKind, int], frozenset[str]]:
    """The labels that the role which works next on each ticket asks for."""
    choosy: dict[str, Crew | None] = {}
    """Crews with a role that asks for labels, by digest."""
    found: dict[tuple[JobKind, int], frozenset[str]] = {}
    for ticket in live:
        if ticket.spec.crew not in choosy:
            crew = crews.get(tx, ticket.spec.crew)
            choosy[ticket.spec.crew] = crew if any(stage.role.on for stage in crew.stages) else None
        if (mine := choosy[ticket.spec.crew]) is not None:
            kind, stage = _next_stage(tx, ticket, mine)
            found[kind, ticket.id] = frozenset(stage.role.on if stage else ())
    return found


def _next_stage(tx: ReadTransaction, ticket: Ticket, crew: Crew) -> tuple[JobKind, TeamStage | None]:
    if ticket.state is not State.REVIEWING:
        return JobKind.RUN, teams.at_turn(tx, ticket, crew)
    pending = verdicts.pending(tx, ticket)
    return JobKind.REVIEW, crew.stage(pending[0].reviewer) if pending else None
