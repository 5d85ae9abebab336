"""Routines of a project: add, list, remove and run them. A start dispatches with the person's own rights and checks."""

from __future__ import annotations

import math
from dataclasses import replace

from legion.domain.errors import BadInput, LegionError, StateConflict
from legion.domain.events import EventKind
from legion.domain.projects import Project
from legion.domain.routines import LONGEST, MOST, OnEvent, Routine, next_after, parse
from legion.domain.tickets.spec import MOST_BUDGET
from legion.jobs.agent import teams
from legion.jobs.background import routine_clock
from legion.jobs.board import Board
from legion.jobs.context import Context
from legion.service.plans import decisions, templates
from legion.service.projects import registry
from legion.service.shared.fragments import shaped
from legion.service.tickets.dispatch import dispatch
from legion.store import events
from legion.store.board import projects, routines
from legion.wire.dispatch import Dispatch, NewTicket
from legion.wire.plans import ApprovePlan
from legion.wire.projects import Done, Where
from legion.wire.templates import AddRoutine, RoutineLine, Routines, RunTemplate

_LONGEST_TITLE = 60
_LONGEST_RESULT = 300


def add(context: Context, wanted: AddRoutine) -> Routines:
    record = registry.find(context, wanted.cwd)
    schedule, what = parse(wanted.starts), wanted.what.strip()
    if not what or len(what) > LONGEST:
        raise BadInput(f"A routine has the name of a template, or a text of 1 to {LONGEST:,} characters.")
    if wanted.budget is not None and not (math.isfinite(wanted.budget) and 0 < wanted.budget <= MOST_BUDGET):
        raise BadInput(f"A budget is a number of dollars above 0, at most {MOST_BUDGET:,}.")
    template = _template(context, wanted, what)
    if wanted.team:
        teams.crew(context, context.project_of(record), wanted.team)
    tags = routine_clock.tags_of(record) if isinstance(schedule, OnEvent) else ()
    if tags is None:
        raise StateConflict(
            f"The tags of {record.root} cannot be read now: make the folder readable, then add it again."
        )
    with context.store.write() as tx:
        if len(routines.of_project(tx, record.id)) >= MOST:
            raise StateConflict(
                f"There are {MOST} routines already. Run `legion plan routine remove N` for one of them."
            )
        new = Routine(
            id=0,
            project=record.id,
            starts=" ".join(wanted.starts.split()),
            template=template,
            text="" if template else what,
            variables=dict(wanted.values),
            team=wanted.team,
            budget=wanted.budget,
            due_at=None if isinstance(schedule, OnEvent) else next_after(schedule, tx.now, routine_clock.zone()),
            seen=events.last(tx),
            tags=tags,
        )
        made = routines.add(tx, new)
    return Routines(routines=[_line(made)])


def listed(context: Board, cwd: str) -> Routines:
    project = registry.find(context, cwd)
    with context.store.read() as tx:
        return Routines(routines=[_line(one) for one in routines.of_project(tx, project.id)])


def remove(context: Board, routine: int, wanted: Where) -> Done:
    project = registry.find(context, wanted.cwd)
    with context.store.write() as tx:
        routines.remove(tx, project.id, routine)
    return Done(message=f"Routine {routine} is removed; its tickets stay.")


def run(context: Context, routine: int, wanted: Where) -> Routines:
    """Start it now, whatever its time; the next start by time stays."""
    project = registry.find(context, wanted.cwd)
    with context.store.read() as tx:
        found = routines.get(tx, project.id, routine)
    if open_ones := _open(context, found):
        first = open_ones[0]
        raise StateConflict(f"Ticket {first} of the last start is still open: see `legion ticket {first}`.")
    return Routines(routines=[_line(start(context, found, "the person started it"))])


def start(context: Context, routine: Routine, why: str) -> Routine:
    """Dispatch its tickets and record the result. The record counts first: of two starts only one dispatches."""
    with context.store.write() as tx:
        current = routines.get(tx, routine.project, routine.id)
        if current.version != routine.version:
            raise StateConflict(f"Routine {routine.id} changed meanwhile: see `legion plan routine list`.")
        claimed = routines.save(tx, current, replace(current, last_at=tx.now, runs=current.runs + 1, last_result=why))
        project = projects.get(tx, routine.project)
    try:
        made, result = _dispatch(context, project, claimed, why)
    except LegionError as refused:
        made, result = (), f"refused: {refused.message}"
    with context.store.write() as tx:
        current = routines.get(tx, routine.project, routine.id)
        done = replace(current, last_tickets=made, last_result=result[:_LONGEST_RESULT])
        data = {"routine": routine.id, "why": why, "tickets": list(made), "result": result[:_LONGEST_RESULT]}
        tx.record(EventKind.ROUTINE_RAN, project=routine.project, data=data)
        return routines.save(tx, current, done)


def _dispatch(context: Context, project: Project, routine: Routine, why: str) -> tuple[tuple[int, ...], str]:
    """The tickets, and what to tell the person. A repeated call finds the first one's tickets."""
    request = f"routine:{routine.id}:{routine.runs}"
    if not routine.template:
        title = routine.text.splitlines()[0][:_LONGEST_TITLE]
        new = NewTicket(
            title=title,
            text=routine.text,
            context=f"Routine {routine.id} ({routine.starts}) dispatched this: {why}.",
            team=routine.team,
            budget=routine.budget,
            labels=["routine"],
        )
        made = dispatch(context, Dispatch(cwd=project.worktrees, tickets=[new], request=request)).ids
        return tuple(made), f"ticket {made[0]}: {why}"
    wanted = RunTemplate(
        cwd=project.worktrees, name=routine.template, values=dict(routine.variables), team=routine.team, epic=""
    )
    page = templates.run(context, wanted).plan
    assert page is not None, "only a dry run has no plan"
    number = int(page.plan.id[1:])
    if page.findings:
        return (), f"plan {page.plan.id} has findings and waits for `legion approve {page.plan.id}`"
    approval = decisions.approval_of(context, number, ApprovePlan(request=request))
    budgeted = [one if one.checkpoint else replace(one, budget=routine.budget) for one in approval.tickets]
    approved = decisions.carry_out(context, replace(approval, tickets=budgeted))
    return tuple(approved.tickets.values()), f"plan {page.plan.id}: {why}"


def _open(context: Board, routine: Routine) -> list[int]:
    with context.store.read() as tx:
        return routine_clock.open_tickets(tx, routine)


def _template(context: Context, wanted: AddRoutine, what: str) -> str:
    """Its name, after a dry run; empty where `what` is a text. A single word that names no template is a mistake."""
    if len(what.split()) > 1:
        if wanted.values:
            raise BadInput("--var belongs to a template: name one, or leave it out.")
        return ""
    # Raises BadInput for an unknown template, and for variables that do not fit.
    templates.run(context, RunTemplate(cwd=wanted.cwd, name=what, values=wanted.values, team=wanted.team, dry_run=True))
    return what


def _line(one: Routine) -> RoutineLine:
    return shaped(RoutineLine, one, values=dict(one.variables))
