"""Describes a planner's run: its own checkout of the target, its program and its prompt. It gets no token."""

from __future__ import annotations

from dataclasses import dataclass

from legion.config.files.user import CLAUDE
from legion.domain.agents.teams import READING
from legion.domain.plans.plan import GoalPlan, PlanSource
from legion.domain.plans.specification import SpecStage, next_stage
from legion.domain.runs import PLANNER
from legion.domain.tickets.ticket import Ticket
from legion.drivers.profile import RunInput
from legion.jobs.agent import spec
from legion.jobs.agent.model_run import AgentProgram, PreparedInput
from legion.jobs.agent.preparation import Workplace
from legion.jobs.board import Board
from legion.jobs.plan import prompt, spec_prompt
from legion.jobs.plan.prompt import PlanMaterial
from legion.jobs.trees import ProjectContext
from legion.store.board import goals, questions, specifications, tickets
from legion.store.database.transactions import ReadTransaction
from legion.store.work import usage


@dataclass(frozen=True, kw_only=True)
class PlannerPrompts:
    first: str
    again: str
    """For a conversation that resumes."""
    rules: str


def place(context: Board, project: ProjectContext, plan: GoalPlan) -> Workplace:
    """A checkout of the target. Dependencies only for a program that could run something."""
    chosen = _program(context, project)
    runs_something = not chosen.capabilities.reads_only
    return Workplace(
        program=chosen,
        title=plan.name,
        base=project.target,
        has_setup=runs_something,
        has_environment=runs_something,
        variables={"LEGION_ROLE": PLANNER, "LEGION_PLAN": plan.name, "LEGION_ROUND": str(plan.rounds + 1)},
    )


def _program(context: Board, project: ProjectContext) -> AgentProgram:
    return spec.choose_program(context, project.config, "", context.user.planner.driver or CLAUDE)


def prepared_input(context: Board, project: ProjectContext, plan: GoalPlan) -> PreparedInput:
    with context.store.read() as tx:
        asked = prompts(project, tx, plan)
        spent = usage.of_plan(tx, plan.id).usd
    given = RunInput(
        prompt=asked.first,
        resume_prompt=asked.again,
        rules=asked.rules,
        model=plan.model or context.user.planner.model,
        allowance=plan.budget,
        spent=spent,
        tools=READING,
        role=PLANNER,
    )
    return PreparedInput(program=_program(context, project), input=given)


def stage_of(tx: ReadTransaction, plan: GoalPlan) -> SpecStage | None:
    """The document that is written next; None: the plan itself is made."""
    return next_stage(specifications.of_plan(tx, plan.id)) if plan.spec else None


def prompts(project: ProjectContext, tx: ReadTransaction, plan: GoalPlan) -> PlannerPrompts:
    material = _material(project, tx, plan)
    stage = stage_of(tx, plan)
    if stage is None:
        return PlannerPrompts(first=prompt.first(material), again=prompt.again(material), rules=prompt.RULES)
    documents = specifications.of_plan(tx, plan.id)
    text = spec_prompt.first(plan, stage, documents, material.answers, material.complaint)
    return PlannerPrompts(first=text, again=text, rules=spec_prompt.RULES)


def _material(project: ProjectContext, tx: ReadTransaction, plan: GoalPlan) -> PlanMaterial:
    limits, rounds = project.config.plans, goals.rounds(tx, plan.id)
    asked = [questions.by_key(tx, key) for key in plan.asked]
    last = rounds[-1] if rounds and plan.tries else None
    return PlanMaterial(
        specification=spec_prompt.material(specifications.of_plan(tx, plan.id)) if plan.spec else "",
        plan=plan,
        checks=[(check.name, check.command) for check in project.config.checks],
        most_files=limits.most_files,
        most_lines=limits.most_lines,
        approved=tuple(goals.dispatched(tx, plan.id)),
        answers=[one for one in asked if one is not None],
        complaint=last.message if last is not None and not last.usable else "",
        tickets=_tickets(tx, plan),
    )


def _tickets(tx: ReadTransaction, plan: GoalPlan) -> tuple[Ticket, ...]:
    if plan.source is PlanSource.SPLIT and plan.about is not None:
        return (tickets.get(tx, plan.about),)
    if plan.source is PlanSource.EPIC:
        return tickets.of_epic(tx, plan.project, plan.epic)
    return ()
