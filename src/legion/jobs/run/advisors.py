"""The part of the run job in which an adviser reads ticket and code before the builder starts.

Its checkout is thrown away; only its final message counts. It is stored with the end of the run, and the ticket returns
to the queue as the same attempt: the next role follows from what is stored.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from legion.domain.agents.teams import READING, Advice, Crew, RolePart, TeamStage, turn_of
from legion.domain.runs import Outcome, Run
from legion.domain.tickets import ladder
from legion.domain.tickets.attempts import next_try
from legion.domain.tickets.ticket import Park, Resume, Step, Ticket
from legion.drivers.profile import RunInput
from legion.jobs.agent import model_run, spec, teams
from legion.jobs.agent.briefing import ADVISER_RULES, advice_prompt, restart_text
from legion.jobs.agent.final_message import final_message
from legion.jobs.agent.model_run import AgentProgram
from legion.jobs.attempts import escalation
from legion.jobs.context import Context, ProjectContext
from legion.jobs.machine_runs import placements
from legion.jobs.machines.travel import MachineJob
from legion.jobs.supervise import outcome as judging
from legion.jobs.workspace import environment, setup
from legion.jobs.workspace.environment import WorkspaceEnv
from legion.runner.launch import EndedRun, LostRun
from legion.runner.spec import RunSpec, write_spec
from legion.store.board import crews
from legion.store.database.transactions import Transaction
from legion.store.work import attendances, runs, usage
from legion.system import crash
from legion.system.crash import Point

LONGEST = 8000
"""Characters of an advice that are kept: they are part of the builder's briefing."""
_CUT = "\n[... cut ...]"


def start(tx: Transaction, ticket: Ticket, machine: str = "") -> Run:
    """The run of the first role whose advice is missing, else of the builder.

    `machine`: where, unless a person is at its side; empty: on the head.

    A ticket that was escalated starts a new conversation in every role.
    """
    stage = teams.at_turn(tx, ticket, crews.get(tx, ticket.spec.crew))
    role, part = (stage.key, RolePart.ADVISE) if stage.part is RolePart.ADVISE else ("", RolePart.BUILD)
    before = runs.latest(tx, ticket.id, role)
    here = attendances.of_ticket(tx, ticket.id) is not None
    this_run = runs.start(tx, ticket.id, ticket.attempt, role=role, part=part, machine="" if here else machine)
    if ticket.spec.climbs and ladder.begins(ticket) and before is not None and before.attempt < ticket.attempt:
        runs.renew_conversation(tx, this_run.id)
    return this_run


@dataclass(frozen=True, kw_only=True)
class AdvisorEnd:
    """How an adviser's run ended, and what came of it."""

    outcome: Outcome
    detail: str
    step: Step
    advice: Advice | None = None
    rest: Park | None = None


def conclude(context: Context, ticket: Ticket, this_run: Run, ended: EndedRun | LostRun) -> AdvisorEnd:
    """A failed adviser costs an attempt; its failure is no feedback for the builder."""
    outcome, detail = judging.outcome(ended)
    given = outcome in (Outcome.FINISHED, Outcome.GAVE_UP)
    message = final_message(context.data.runs / this_run.name).strip() if given else ""
    if message:
        turn = turn_of(ladder.place(ticket))
        text = message if len(message) <= LONGEST else message[:LONGEST] + _CUT
        advice = Advice(ticket=ticket.id, turn=turn, role=this_run.role, run=this_run.id, text=text)
        return AdvisorEnd(outcome=outcome, detail="advised", step=Resume(f"{this_run.role} has advised"), advice=advice)
    if outcome in (Outcome.FINISHED, Outcome.GAVE_UP):
        step: Step = next_try(ticket, f"{this_run.role} gave no advice", "")
    elif outcome in (Outcome.FAILED, Outcome.TIMED_OUT):
        step = next_try(ticket, f"{this_run.role} gave no advice: its program failed ({detail})", "")
    else:
        unfinished = judging.unfinished(context, ticket, this_run, ended)
        assert unfinished is not None, "every other outcome is an unfinished run"
        step = unfinished
    rest = judging.rest_after(context, ticket, ended, step)
    return AdvisorEnd(outcome=outcome, detail=detail, step=step, rest=rest)


def prepare(context: Context, project: ProjectContext, ticket: Ticket, this_run: Run) -> None:
    """Checkout, prompt, spec. Dependencies only for a role that could run something."""
    assert ticket.base is not None, "a started ticket has a base"
    crew = teams.of_ticket(context, ticket)
    stage = crew.stage(this_run.role)
    assert stage is not None, "a ticket keeps its crew"
    seat = this_run.seat
    crash.reach(Point.ADVISE_BEFORE_WORKTREE)
    tree = project.worktrees.replant(
        seat, ticket.base, _start_tree(context, project, ticket), f"legion/{seat}", attempt=this_run.id
    )
    crash.reach(Point.ADVISE_AFTER_WORKTREE)
    if stage.tools is None or stage.tools - READING:
        setup.ensure(context, project, tree)
    env = environment.prepare(context, project, this_run, tree)
    folder = context.data.runs / this_run.name
    (folder / "given").mkdir(parents=True, exist_ok=True)
    write_spec(folder, _spec(context, project, ticket, this_run, stage, crew, tree, env))


def for_machine(context: Context, project: ProjectContext, ticket: Ticket, this_run: Run) -> MachineJob:
    """The same, for another machine to prepare."""
    assert ticket.base is not None, "a started ticket has a base"
    crew = teams.of_ticket(context, ticket)
    stage = crew.stage(this_run.role)
    assert stage is not None, "a ticket keeps its crew"
    chosen, run_input = _input(context, project, ticket, stage, crew)
    made = placements.read_job(context, project, this_run, chosen, run_input, base=ticket.base, title=ticket.spec.title)
    return replace(
        made,
        plant=ticket.plant,
        start=None if ticket.plant is not None else _last_saved(context, ticket),
        has_setup=stage.tools is None or bool(stage.tools - READING),
        variables={"LEGION_ROLE": stage.key},
    )


def _last_saved(context: Context, ticket: Ticket) -> str | None:
    with context.store.read() as tx:
        saved = [run.saved for run in runs.of_ticket(tx, ticket.id, role="") if run.saved is not None]
    return saved[-1] if saved else None


def _start_tree(context: Context, project: ProjectContext, ticket: Ticket) -> str:
    """The tree as the builder will find it."""
    assert ticket.base is not None, "a started ticket has a base"
    if ticket.plant is not None:
        return ticket.plant
    return project.hub.tree_of(_last_saved(context, ticket) or ticket.base)


def _spec(
    context: Context,
    project: ProjectContext,
    ticket: Ticket,
    this_run: Run,
    stage: TeamStage,
    crew: Crew,
    tree: Path,
    env: WorkspaceEnv,
) -> RunSpec:
    given = context.data.runs / this_run.name / "given"
    chosen, run_input = _input(context, project, ticket, stage, crew)
    paths = spec.run_paths(context, project, this_run, chosen, tree, given, env, LEGION_ROLE=stage.key)
    return model_run.spec(context, this_run, chosen, run_input, paths)


def _input(
    context: Context, project: ProjectContext, ticket: Ticket, stage: TeamStage, crew: Crew
) -> tuple[AgentProgram, RunInput]:
    chosen = spec.choose_program(context, project.config, "", stage.role.driver or ticket.spec.driver)
    with context.store.read() as tx:
        tried, earlier = escalation.tried(tx, ticket), teams.advice_for_builder(tx, ticket)
        spent = usage.of_ticket(tx, ticket.id).usd
    others = [one for one in earlier if one.role != stage.key]
    prompt = advice_prompt(ticket, project.config, tried, others)
    return chosen, RunInput(
        prompt=prompt,
        resume_prompt=restart_text(prompt),
        rules=f"{ADVISER_RULES}\n\n{stage.role.prompt}".strip(),
        model=stage.role.model,
        provider=stage.role.provider,
        tools=teams.tools(stage, ticket),
        allowance=model_run.allowance(context, ticket),
        spent=spent,
        role=stage.role.name,
        team=crew.team,
    )
