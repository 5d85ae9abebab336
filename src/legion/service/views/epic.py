"""An epic: its tickets with progress, order and money, its plans, and stopping all of it."""

from __future__ import annotations

import math
from collections import Counter

from legion.domain.errors import BadInput, NotFound
from legion.domain.plans.plan import GoalPlan, PlanState
from legion.domain.plans.specification import stage_states
from legion.domain.projects import Project, is_session_of_epic
from legion.domain.runs import Run
from legion.domain.scheduling.usage import total
from legion.domain.text import count
from legion.domain.tickets import board
from legion.domain.tickets.spec import MOST_BUDGET, LandingGate
from legion.domain.tickets.ticket import State, Stop, Ticket
from legion.jobs.supervise.usage import catch_up
from legion.jobs.trees import Trees
from legion.service.plans import decisions, pages
from legion.service.projects import epic_branches, registry
from legion.service.shared.fragments import usage_line
from legion.service.tickets import actions
from legion.service.views.ticket_line import TicketLines
from legion.store import epic_sessions
from legion.store.board import goals, landings, projects, tickets
from legion.store.database.transactions import ReadTransaction
from legion.store.work import runs, usage
from legion.wire.plans import EpicBudget, EpicGate, EpicPage, EpicStageLine, NamedEpic
from legion.wire.tickets import Acted

_WRITING = (PlanState.PLANNING, PlanState.ASKING, PlanState.WRITTEN)


def epic_page(context: Trees, cwd: str, name: str) -> EpicPage:
    project = registry.find(context, cwd)
    catch_up(context)
    with context.store.read() as tx:
        mine = _across(tx, _of_epic(tx, project, name), name)
        planned = _plans(tx, project, name)
        if not mine and not any(one.spec for one in planned):
            raise _no_epic(name)
        stages = [line for one in planned if one.spec for line in _stages(tx, one)]
        lines = TicketLines(context, tx, mine)
        of_plans = [usage.of_plan(tx, one.id) for one in planned]
        spent = total((*of_plans, *(usage.of_ticket(tx, ticket.id) for ticket in mine)))
        plans = [pages.line(tx, one) for one in planned]
        read = [one for one in planned if one.points]
        shown = [lines.line(ticket) for ticket in mine]
        wanted = _wanted_session(tx, project, name)
        gate = epic_sessions.gates(tx).get((project.id, name))
        limit = epic_sessions.budgets(tx).get((project.id, name), context.user.budgets.epic_usd)
    numbers = {ticket.id for ticket in mine}
    edges = {ticket.id: [other for other in ticket.spec.after if other in numbers] for ticket in mine}
    cost = {ticket.id: 0.0 if ticket.state is State.DONE else 1.0 for ticket in mine}
    landed = sorted((one for one in mine if one.landed is not None), key=lambda one: one.moved_at)
    return EpicPage(
        name=name,
        tickets=shown,
        counts=dict(Counter(ticket.state.value for ticket in mine)),
        done=sum(ticket.state is State.DONE for ticket in mine),
        total=len(mine),
        landed=[f"{one.landed}" for one in landed],
        usage=usage_line(spent),
        budget=limit or None,
        gate=gate.value if gate is not None else "",
        plans=plans,
        stages=stages,
        lands_when=epic_branches.waits_for(context, *wanted, name) if wanted is not None else "",
        points=pages.point_lines(read[-1]) if read else [],
        reader=read[-1].name if read else "",
        waves=board.waves(edges),
        critical_path=board.critical_path(edges, cost),
    )


def set_budget(context: Trees, wanted: EpicBudget) -> EpicPage:
    """Limit what all tickets of the epic may cost together. Work that has started is saved when it is spent."""
    project = registry.find(context, wanted.cwd)
    if not (math.isfinite(wanted.usd) and 0 <= wanted.usd <= MOST_BUDGET):
        raise BadInput(f"A budget is a number of dollars from 0 to {MOST_BUDGET:,}; 0 removes it.")
    with context.store.write() as tx:
        _tickets(tx, project, wanted.epic)
        for id in _projects(tx, project, wanted.epic):
            epic_sessions.set_budget(tx, id, wanted.epic, wanted.usd or None)
    return epic_page(context, wanted.cwd, wanted.epic)


def set_gate(context: Trees, wanted: EpicGate) -> EpicPage:
    """Set whether changes of the epic wait for the person. A ticket's own gate counts more."""
    project = registry.find(context, wanted.cwd)
    known = [gate.value for gate in LandingGate]
    if wanted.gate and wanted.gate not in known:
        raise BadInput(f"A gate is {' or '.join(known)}, not {wanted.gate[:40]!r}; empty for the project's.")
    with context.store.write() as tx:
        _tickets(tx, project, wanted.epic)
        for id in _projects(tx, project, wanted.epic):
            epic_sessions.set_gate(tx, id, wanted.epic, LandingGate(wanted.gate) if wanted.gate else None)
    return epic_page(context, wanted.cwd, wanted.epic)


def stop_epic(context: Trees, wanted: NamedEpic) -> Acted:
    """Stop every ticket that has not ended, a specification that is being written, and the wait to land its branch."""
    project = registry.find(context, wanted.cwd)
    active: list[Run] = []
    with context.store.write() as tx:
        written = [one for one in _plans(tx, project, wanted.epic) if one.spec and one.state in _WRITING]
        mine = _of_epic(tx, project, wanted.epic)
        if not mine and not written:
            raise _no_epic(wanted.epic)
        intents = [one for id in _projects(tx, project, wanted.epic) for one in landings.open_ones(tx, id)]
        landing = {number for intent in intents for number in dict(intent.tickets)}
        stopped = [one.id for one in mine if not one.ended and one.id not in landing]
        if (wish := _wanted_session(tx, project, wanted.epic)) is not None:
            epic_sessions.want_no_more(tx, wish[0].id, wish[1])
        for number in stopped:
            tickets.move(tx, number, Stop())
            active += runs.active_of(tx, number)
    actions.end_runs(context, active)
    for plan in written:
        decisions.drop(context, plan.id)
    done = [f"{count(len(stopped), 'ticket is', 'tickets are')} stopped."] if stopped else []
    done += [f"{one.name} is dropped." for one in written]
    return Acted(tickets=stopped, message=" ".join(done) or "No open tickets.")


def _across(tx: ReadTransaction, mine: tuple[Ticket, ...], name: str) -> tuple[Ticket, ...]:
    """With those of the same epic in other projects that these come after, or that come after these."""
    known = {one.id: one for one in mine}
    fresh = mine
    while fresh:
        near = {number for one in fresh for number in (*one.spec.after, *tickets.dependants(tx, one.id))}
        other = [
            one for one in tickets.get_many(tx, tickets.states_of(tx, near - known.keys())) if one.spec.epic == name
        ]
        near_projects = [projects.get(tx, number) for number in {one.project for one in other}]
        theirs = {number for one in near_projects for number in _projects(tx, one, name)}
        fresh = tuple(one for number in theirs for one in tickets.of_epic(tx, number, name) if one.id not in known)
        known |= {one.id: one for one in fresh}
    return tuple(known[number] for number in sorted(known))


def _wanted_session(tx: ReadTransaction, project: Project, name: str) -> tuple[Project, Project] | None:
    """The default session and the epic's own, whose branch a person asked to land."""
    parent = projects.by_common_dir(tx, project.common_dir) or project
    session = epic_branches.session_of(tx, parent, name)
    if session is None or not epic_sessions.is_wanted(tx, parent.id, session):
        return None
    return parent, session


def _plans(tx: ReadTransaction, project: Project, name: str) -> list[GoalPlan]:
    """Those of its own branch, too: its last reader works there."""
    found = [one for id in _projects(tx, project, name) for one in goals.of_epic(tx, id, name)]
    return sorted(found, key=lambda one: one.id)


def _stages(tx: ReadTransaction, plan: GoalPlan) -> list[EpicStageLine]:
    """Of the specification that the plan starts with."""
    runs = {stage.value: run for stage, run in goals.document_runs(tx, plan.id).items()}
    spent = usage.of_runs(tx, runs.values())
    states = stage_states(goals.documents_of(tx, plan.id), plan.state, planned=plan.draft is not None, short=plan.short)
    return [
        EpicStageLine(
            plan=plan.name,
            stage=stage,
            state=state.value,
            usd=spent[runs[stage]].known_usd if runs.get(stage) in spent else None,
        )
        for stage, state in states.items()
    ]


def _tickets(tx: ReadTransaction, project: Project, name: str) -> tuple[Ticket, ...]:
    found = _of_epic(tx, project, name)
    if not found:
        raise _no_epic(name)
    return found


def _of_epic(tx: ReadTransaction, project: Project, name: str) -> tuple[Ticket, ...]:
    found = [one for id in _projects(tx, project, name) for one in tickets.of_epic(tx, id, name)] if name else []
    return tuple(found)


def _no_epic(name: str) -> NotFound:
    return NotFound(
        f"There is no epic {name[:60]!r}: `legion dispatch --epic NAME` starts one, `legion usage --by epic` lists all."
    )


def _projects(tx: ReadTransaction, project: Project, name: str) -> list[int]:
    """The sessions of the repository, with those that were the epic's own and ended."""
    ended = projects.sessions_of(tx, project.common_dir, ended=True)
    mine = [one.id for one in ended if is_session_of_epic(one.session, name)]
    return [*mine, *(one.id for one in projects.sessions_of(tx, project.common_dir))]
