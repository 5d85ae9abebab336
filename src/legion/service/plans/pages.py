"""Plans as `legion plan list` and `legion plan show` show them. Read only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from legion.domain.plans.checks import PlanFinding, ProofTrial
from legion.domain.plans.draft import PlanTicket
from legion.domain.plans.plan import GoalPlan, PlanState, longest_chain, offered, plan_name
from legion.domain.projects import Project
from legion.domain.runs import plan_seat
from legion.domain.scheduling.decide import JobKind
from legion.domain.tickets.ticket import State
from legion.jobs.board import Board
from legion.jobs.plan import facts
from legion.jobs.trees import ProjectContext, Trees
from legion.service.plans import conversion
from legion.service.projects import registry
from legion.service.questions import question_lines
from legion.service.shared.fragments import shaped, usage_line
from legion.store.board import goals, projects, questions, tickets
from legion.store.board.goals import PlanRound
from legion.store.database.transactions import ReadTransaction
from legion.store.work import usage
from legion.wire.plans import (
    PlanCriterionLine,
    PlanDocumentLine,
    PlanEstimateLine,
    PlanFindingLine,
    PlanLine,
    PlanList,
    PlanPage,
    PlanRoundLine,
    PlanTicketLine,
)


def plans(context: Board, cwd: str, all: bool = False) -> PlanList:
    """Plans of a project, newest last; without `all` those that are open, and the failed ones."""
    project = registry.find(context, cwd)
    with context.store.read() as tx:
        found = goals.of_project(tx, project.id)
        shown = [one for one in found if all or one.open or one.state is PlanState.FAILED]
        return PlanList(plans=[replace(line(tx, one), reason=_reason(context, tx, project, one)) for one in shown])


def _reason(context: Board, tx: ReadTransaction, project: Project, plan: GoalPlan) -> str:
    waits = _notes(context, tx, project, plan) if plan.state is PlanState.PLANNING else []
    return plan.reason or " ".join(waits)


def page(context: Trees, plan_id: int) -> PlanPage:
    with context.store.read() as tx:
        record = goals.get(tx, plan_id).project
    project = context.project(record)
    with context.store.read() as tx:
        plan = goals.get(tx, plan_id)
        became = goals.dispatched(tx, plan_id)
        states = tickets.states_of(tx, became.values())
        estimate = facts.estimated(project, tx, plan)
        asked = [one for one in questions.open_ones(tx) if one.key in plan.asked]
        draft = plan.draft
        return PlanPage(
            plan=line(tx, plan),
            summary=draft.summary if draft else "",
            risks=draft.risks if draft else "",
            tickets=[
                ticket_line(project, one, became, states, plan.trials) for one in (draft.tickets if draft else ())
            ],
            chain=list(longest_chain(draft)) if draft else [],
            findings=[finding_line(one) for one in plan.findings],
            rounds=[_round(one) for one in goals.rounds(tx, plan_id)],
            estimate=shaped(PlanEstimateLine, estimate),
            questions=question_lines(tx, asked),
            team=plan.team,
            model=plan.model,
            budget=plan.budget,
            usage=usage_line(usage.of_plan(tx, plan_id)),
            drops=list(conversion.replaced(plan)),
            notes=_notes(context, tx, project.record, plan) if plan.state is PlanState.PLANNING else [],
            spec=plan.spec,
            depth=_depth(plan),
            keep_docs=plan.keep_docs,
            points=point_lines(plan),
            documents=[
                PlanDocumentLine(stage=stage.value, text=text)
                for stage, text in goals.documents_of(tx, plan_id).items()
            ],
        )


def _depth(plan: GoalPlan) -> str:
    chosen = "none" if not plan.spec else "short" if plan.short else "full"
    return f"{chosen}: {plan.depth}" if plan.depth else ""


def _notes(context: Board, tx: ReadTransaction, project: Project, plan: GoalPlan) -> list[str]:
    """Why a planner that should start does not."""
    notes = []
    if not projects.is_trusted(tx, project.id, project.config_hash):
        notes.append("legion.toml is not trusted, so nothing starts. Read it and run `legion trust`.")
    if project.paused:
        notes.append(f"The project is paused. Run `{project.resumed_by}` to resume it.")
    hold = context.live.scheduler.holds.get(plan_seat(plan.id))
    backoff = context.live.scheduler.backoffs.get((JobKind.PLAN, plan.id))
    return [*notes, *([hold.why] if hold else []), *([backoff.why] if backoff else [])]


def line(tx: ReadTransaction, plan: GoalPlan) -> PlanLine:
    return shaped(
        PlanLine,
        plan,
        id=plan.name,
        project=projects.get(tx, plan.project).name,
        epic=plan.epic or plan_name(plan.id),
        tickets=len(plan.draft.tickets) if plan.draft else 0,
        approved=len(goals.dispatched(tx, plan.id)),
        findings=len(plan.findings),
        offers=offered(plan),
    )


def ticket_line(
    project: ProjectContext,
    ticket: PlanTicket,
    became: Mapping[str, int],
    states: Mapping[int, State],
    trials: Mapping[str, ProofTrial],
) -> PlanTicketLine:
    number = became.get(ticket.key)
    state = states.get(number) if number is not None else None
    return shaped(
        PlanTicketLine,
        ticket,
        criteria=[shaped(PlanCriterionLine, one, tried=_tried(trials.get(one.proof))) for one in ticket.criteria],
        after=[*ticket.after, *map(str, ticket.after_tickets)],
        ticket=number,
        state=state.value if state else "dropped" if number is not None else "",
        when=str(ticket.when or ""),
        asks_for=list(conversion.asks_for(project, ticket)),
    )


def point_lines(plan: GoalPlan) -> list[PlanCriterionLine]:
    """What a last reader found, and what Legion saw when it ran the commands."""
    return [
        shaped(PlanCriterionLine, one, proof=one.command, tried=_tried(plan.trials.get(one.command)))
        for one in plan.points
    ]


def _tried(trial: ProofTrial | None) -> str:
    if trial is None:
        return ""
    return trial.said if trial.exit_code is None else "red" if trial.exit_code else "green"


def finding_line(one: PlanFinding) -> PlanFindingLine:
    return PlanFindingLine(kind=one.kind.value, ticket=one.ticket, text=one.text)


def _round(one: PlanRound) -> PlanRoundLine:
    return shaped(PlanRoundLine, one, findings=[finding_line(finding) for finding in one.findings])
