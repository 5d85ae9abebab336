"""The scheduler's snapshot, read by a few statements whose cost does not grow with ended tickets."""

from __future__ import annotations

from collections.abc import Mapping, Set

from sqlalchemy import select

from legion.domain.agents.teams import RolePart
from legion.domain.projects import Project
from legion.domain.runs import Run
from legion.domain.scheduling.decide import AgentView, BoardSnapshot, JobKind, PlanView, ProjectView
from legion.store.board import goals, landings, projects, races, tickets, verdicts
from legion.store.database import schema
from legion.store.database.fixed_query import FixedQuery
from legion.store.database.transactions import ReadTransaction
from legion.store.staff import agents, mail, ticket_holders
from legion.store.work import claims, runs, takeovers

_TRUSTED = FixedQuery(
    select(schema.trusted.c.project, schema.trusted.c.hash), lambda row: (int(row.project), str(row.hash)), remember=100
)


def load(tx: ReadTransaction, slots: int, parallel: Mapping[int, int]) -> BoardSnapshot:
    """`parallel` says by project how many agents may work at once; a project that it leaves out has all the slots."""
    trusted = set(_TRUSTED.all(tx))
    landing = landings.begun(tx)
    views = tuple(
        _view(
            project,
            parallel.get(project.id, slots),
            trusted=(project.id, project.config_hash) in trusted,
            landing_open=project.id in landing,
        )
        for project in projects.all(tx)
    )
    cared_for = {view.id for view in views}
    live = tuple(ticket for ticket in tickets.live(tx) if ticket.project in cared_for)
    before = {other for ticket in live for other in ticket.spec.after} - {ticket.id for ticket in live}
    active = runs.active(tx)
    at = {(claim.kind, claim.subject): claim.machine for claim in claims.active(tx)}
    return BoardSnapshot(
        projects=views,
        tickets=live,
        ended=tickets.states_of(tx, before),
        jobs=frozenset(at),
        at=at,
        open_at={_followed_by(run): run.machine for run in active},
        slots=slots,
        open_runs=frozenset(run.ticket for run in active if run.ticket is not None and run.part is not RolePart.READ),
        open_reviews=frozenset(run.ticket for run in active if run.ticket is not None and run.part is RolePart.READ),
        optional_reviews={id: project for id, project in verdicts.optional_reviews(tx).items() if project in cared_for},
        lanes={lane.ticket: race for race, lanes in races.undecided(tx).items() for lane in lanes},
        racing=races.held(tx, {ticket.id: ticket for ticket in live}),
        held=ticket_holders.tickets(tx),
        attended=takeovers.at_work(tx),
        agents=_agents(tx, {run.agent: run.project for run in active if run.agent is not None}),
        plans=_plans(tx, cared_for, {run.plan: run.project for run in active if run.plan is not None}),
    )


def _followed_by(run: Run) -> tuple[JobKind, int]:
    """The job that follows the run to its end."""
    if run.ticket is not None:
        return (JobKind.REVIEW if run.part is RolePart.READ else JobKind.RUN), run.ticket
    return (JobKind.SERVE, run.agent) if run.agent is not None else (JobKind.PLAN, run.plan or 0)


def _agents(tx: ReadTransaction, in_a_turn: Mapping[int, int]) -> tuple[AgentView, ...]:
    """Standing agents, and fired ones whose turn has not ended: by number, with their projects."""
    waiting = mail.waiting_since(tx)
    standing = [
        AgentView(
            number=agent.number,
            project=agent.project,
            wanted=agent.owes or agent.id in waiting,
            held_until=agent.held_until,
            in_a_turn=agent.number in in_a_turn,
            waiting_since=0.0 if agent.owes else waiting.get(agent.id, 0.0),
        )
        for agent in agents.standing(tx)
    ]
    known = {agent.number for agent in standing}
    fired = [
        AgentView(number=number, project=project, wanted=False, in_a_turn=True)
        for number, project in in_a_turn.items()
        if number not in known
    ]
    return (*standing, *fired)


def _plans(tx: ReadTransaction, cared_for: Set[int], in_a_run: Mapping[int, int]) -> tuple[PlanView, ...]:
    """Plans that need their planner, and others whose planner has not ended: by number, with their projects."""
    wanted = [
        PlanView(
            number=plan.id,
            project=plan.project,
            wanted=True,
            held_until=plan.held_until,
            in_a_run=plan.id in in_a_run,
            waiting_since=plan.moved_at,
        )
        for plan in goals.being_planned(tx)
        if plan.project in cared_for
    ]
    known = {plan.number for plan in wanted}
    others = [
        PlanView(number=number, project=project, wanted=False, in_a_run=True)
        for number, project in in_a_run.items()
        if number not in known
    ]
    return (*wanted, *others)


def _view(project: Project, parallel: int, *, trusted: bool, landing_open: bool) -> ProjectView:
    return ProjectView(
        id=project.id,
        parallel=parallel,
        paused=project.paused,
        trusted=trusted,
        baseline_known=project.baseline_known,
        baseline_red=project.baseline_red,
        upstream_pending=project.upstream_pending,
        landing_open=landing_open,
    )
