"""Creates plans: of a goal, of a ticket that is split, of an epic that continues, and of an expanded template."""

from __future__ import annotations

import math
from dataclasses import replace

from legion.domain.agents.agent import Agent
from legion.domain.errors import BadInput, NotFound, StateConflict
from legion.domain.plans.checks import findings
from legion.domain.plans.draft import PlanDraft
from legion.domain.plans.plan import ROUNDS, GoalPlan, PlanAuthor, PlanSource, answered, split_of
from legion.domain.plans.specification import Depth, depth_of
from legion.domain.projects import Project
from legion.domain.tickets.offers import may
from legion.domain.tickets.spec import MOST_BUDGET
from legion.jobs.agent import teams
from legion.jobs.context import Context
from legion.jobs.landing import target
from legion.jobs.plan import facts
from legion.jobs.trees import Trees
from legion.service.plans import pages
from legion.service.projects import registry
from legion.service.shared.repeats import refuse_other_operation
from legion.service.tickets.actions import get_ticket
from legion.store.board import goals, projects, tickets
from legion.store.staff import agents
from legion.store.work import idempotency
from legion.wire.plans import NewPlan, PlanPage, ReplanEpic, SplitTicket

LONGEST_GOAL = 40_000
LONGEST_EPIC = 200


def plan(context: Trees, wanted: NewPlan, by: Agent | None = None) -> PlanPage:
    """Store a goal; the scheduler starts its planner. `by`: the leader that asks for it and pays."""
    record = registry.find(context, wanted.cwd)
    goal = wanted.goal.strip()
    if not goal or len(goal) > LONGEST_GOAL:
        raise BadInput(f"A goal has 1 to {LONGEST_GOAL:,} characters. Say what you want: legion plan 'GOAL'.")
    depth = _depth(wanted)
    if wanted.keep_docs and depth is Depth.NONE:
        raise BadInput("--keep-docs keeps the documents of a specification: add --spec.")
    _refuse_amount(wanted.budget)
    _refuse_epic(wanted.epic)
    project = context.project_of(record)
    target.fetch(context, project)
    if wanted.team:
        teams.crew(context, project, wanted.team)
    why = ""
    if depth is Depth.AUTO:
        depth, why = depth_of(goal, facts.file_finder(project, project.target))
        wanted_all = wanted.stop_at or wanted.keep_docs
        depth = Depth.SHORT if wanted_all and depth is Depth.NONE else depth
    new = GoalPlan(
        id=0,
        project=record.id,
        goal=goal,
        epic=wanted.epic.strip(),
        team=wanted.team,
        model=wanted.model.strip(),
        budget=wanted.budget,
        may_ask=wanted.questions,
        dispatcher="" if by is None else by.id,
        spec=depth is not Depth.NONE,
        short=depth is Depth.SHORT,
        depth=why,
        stops=bool(wanted.stop_at),
        keep_docs=wanted.keep_docs,
    )
    return _store(context, record, new, wanted.request, by)


def _depth(wanted: NewPlan) -> Depth:
    """What is written before the plan, in the person's words."""
    if wanted.stop_at not in ("", "spec"):
        raise BadInput(f"--stop-at is spec, not {wanted.stop_at[:40]!r}.")
    whole = Depth.FULL if wanted.spec or wanted.stop_at else Depth.NONE
    try:
        return Depth(wanted.depth) if wanted.depth else whole
    except ValueError:
        raise BadInput(f"--spec is auto, short or full, not {wanted.depth[:40]!r}.") from None


def split(context: Trees, ticket_id: int, wanted: SplitTicket) -> PlanPage:
    """Plan several tickets in place of one."""
    _refuse_amount(wanted.budget)
    with context.store.read() as tx:
        ticket = get_ticket(tx, ticket_id)
        project = projects.get(tx, ticket.project)
        others = [one for one in goals.of_project(tx, ticket.project) if one.about == ticket_id and one.open]
    if not may("split", ticket):
        raise StateConflict(f"Ticket {ticket_id} cannot be split: it is landed, landing or has no agent.")
    if others:
        raise StateConflict(f"{others[0].name} already splits ticket {ticket_id}. See `legion plan show`.")
    new = split_of(ticket, model=wanted.model.strip(), budget=wanted.budget)
    return _store(context, project, new)


def replan(context: Trees, wanted: ReplanEpic) -> PlanPage:
    """Plan what is left of an epic; only what changes is proposed."""
    _refuse_amount(wanted.budget)
    project = registry.find(context, wanted.cwd)
    with context.store.read() as tx:
        earlier = [
            one
            for one in goals.of_project(tx, project.id)
            if (one.epic or one.name) == wanted.epic and one.source in (PlanSource.GOAL, PlanSource.TEMPLATE)
        ]
        # Its tickets may be off the board, while the plan still has some to approve.
        if not wanted.epic or not (earlier or tickets.of_epic(tx, project.id, wanted.epic)):
            raise NotFound(f"There is no epic {wanted.epic[:60]!r}: see `legion usage --by epic`.")
    goal = earlier[0].goal if earlier else f"Complete the epic {wanted.epic}."
    new = GoalPlan(
        id=0,
        project=project.id,
        source=PlanSource.EPIC,
        goal=f"{goal}\n\n{wanted.why}".strip(),
        epic=wanted.epic,
        team=earlier[0].team if earlier else "",
        model=wanted.model.strip(),
        budget=wanted.budget,
    )
    return _store(context, project, new)


def from_draft(context: Context, record: Project, goal: str, draft: PlanDraft, *, team: str, epic: str) -> PlanPage:
    """A plan that needs no planner, because a template or a person wrote it."""
    _refuse_epic(epic)
    project = context.project_of(record)
    target.fetch(context, project)
    new = GoalPlan(id=0, project=record.id, source=PlanSource.TEMPLATE, goal=goal, epic=epic, team=team)
    check = facts.checker(context, project, new, draft)
    with context.store.write() as tx:
        known = check(tx, new)
        found = findings(draft, known)
        made = goals.create(tx, replace(answered(_last_round(new), draft, found, ()), trials=known.trials))
        goals.record_round(tx, made, PlanAuthor.TEMPLATE, findings=found)
    return pages.page(context, made.id)


def _last_round(plan: GoalPlan) -> GoalPlan:
    """No planner gets the findings back, so the first round is the last."""
    return replace(plan, tries=ROUNDS - 1)


def _store(context: Trees, project: Project, new: GoalPlan, request: str = "", by: Agent | None = None) -> PlanPage:
    with context.store.write() as tx:
        if request and (first := idempotency.recall(tx, project.id, request)) is not None:
            refuse_other_operation(first, "plan")
            id = int(first["plan"])
        else:
            if by is not None:
                agents.refuse_expense(tx, by.id, new.budget or 0.0)
            id = goals.create(tx, new).id
            if request:
                idempotency.remember(tx, project.id, request, {"plan": id})
    return pages.page(context, id)


def _refuse_amount(budget: float | None) -> None:
    if budget is not None and not (math.isfinite(budget) and 0 < budget <= MOST_BUDGET):
        raise BadInput(f"A budget is a number of dollars above 0, at most {MOST_BUDGET:,}.")


def _refuse_epic(epic: str) -> None:
    if len(epic) > LONGEST_EPIC or epic != " ".join(epic.split()):
        raise BadInput(f"The name of an epic is one line of at most {LONGEST_EPIC} characters.")
