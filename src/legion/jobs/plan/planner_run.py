"""Prepares a planner's run: its own checkout of the target, its program and its prompt. It gets no token."""

from __future__ import annotations

from dataclasses import dataclass, replace

from legion.config.files.user import CLAUDE
from legion.domain.agents.teams import READING
from legion.domain.plans.plan import GoalPlan, PlanSource
from legion.domain.plans.specification import SpecStage, next_stage
from legion.domain.runs import PLANNER, Run
from legion.domain.tickets.ticket import Ticket
from legion.drivers.profile import RunInput
from legion.jobs.agent import model_run, spec
from legion.jobs.agent.model_run import AgentProgram
from legion.jobs.context import Context, ProjectContext
from legion.jobs.machine_runs import placements
from legion.jobs.machines.travel import MachineJob
from legion.jobs.plan import prompt, spec_prompt
from legion.jobs.plan.prompt import PlanMaterial
from legion.jobs.workspace import environment, setup
from legion.runner.spec import write_spec
from legion.store.board import goals, questions, specifications, tickets
from legion.store.database.transactions import ReadTransaction
from legion.store.work import usage
from legion.system import crash
from legion.system.crash import Point


@dataclass(frozen=True, kw_only=True)
class PlannerPrompts:
    first: str
    again: str
    """For a conversation that resumes."""
    rules: str


def prepare(context: Context, project: ProjectContext, plan: GoalPlan, this_run: Run) -> None:
    """Checkout, prompt, spec. Dependencies only for a program that could run something."""
    crash.reach(Point.PLAN_BEFORE_WORKTREE)
    seat, target = this_run.seat, project.target
    tree = project.worktrees.replant(seat, target, project.hub.tree_of(target), f"legion/{seat}", attempt=this_run.id)
    chosen, run_input = _input(context, project, plan)
    if chosen.capabilities.reads_only:
        env = environment.bare(context, this_run)
    else:
        setup.ensure(context, project, tree)
        env = environment.prepare(context, project, this_run, tree)
    folder = context.data.runs / this_run.name
    given = folder / "given"
    given.mkdir(parents=True, exist_ok=True)
    paths = spec.run_paths(context, project, this_run, chosen, tree, given, env, **_variables(plan))
    write_spec(folder, model_run.spec(context, this_run, chosen, run_input, paths))


def for_machine(context: Context, project: ProjectContext, plan: GoalPlan, this_run: Run) -> MachineJob:
    """The same, for another machine to prepare."""
    chosen, run_input = _input(context, project, plan)
    made = placements.read_job(context, project, this_run, chosen, run_input, base=project.target, title=plan.name)
    runs_something = not chosen.capabilities.reads_only
    return replace(made, has_setup=runs_something, has_environment=runs_something, variables=_variables(plan))


def _variables(plan: GoalPlan) -> dict[str, str]:
    return {"LEGION_ROLE": PLANNER, "LEGION_PLAN": plan.name, "LEGION_ROUND": str(plan.rounds + 1)}


def _input(context: Context, project: ProjectContext, plan: GoalPlan) -> tuple[AgentProgram, RunInput]:
    chosen = spec.choose_program(context, project.config, "", context.user.planner.driver or CLAUDE)
    with context.store.read() as tx:
        asked = prompts(project, tx, plan)
        spent = usage.of_plan(tx, plan.id).usd
    return chosen, RunInput(
        prompt=asked.first,
        resume_prompt=asked.again,
        rules=asked.rules,
        model=plan.model or context.user.planner.model,
        allowance=plan.budget,
        spent=spent,
        tools=READING,
        role=PLANNER,
    )


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
