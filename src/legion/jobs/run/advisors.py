"""The part of the run job in which an adviser reads ticket and code before the builder starts.

Its checkout is thrown away; only its final message counts. It is stored with the end of the run, and the ticket returns
to the queue as the same attempt: the next role follows from what is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from legion.domain.agents.teams import READING, Advice, Crew, RolePart, TeamStage, turn_of
from legion.domain.runs import Outcome, Run
from legion.domain.tickets import ladder
from legion.domain.tickets.ladder import next_try
from legion.domain.tickets.ticket import Park, Resume, Step, Ticket
from legion.drivers.profile import RunInput
from legion.jobs.agent import model_run, spec, teams
from legion.jobs.agent.briefing import ADVISER_RULES, advice_prompt, restart_text
from legion.jobs.agent.model_run import AgentProgram, PreparedInput
from legion.jobs.agent.preparation import Workplace
from legion.jobs.agent.resume_prompt import final_message
from legion.jobs.attempts import escalation
from legion.jobs.board import Board
from legion.jobs.context import Context
from legion.jobs.machine_runs import executor
from legion.jobs.machine_runs.executor import AgentRun, RunOutcome
from legion.jobs.supervise import outcome as judging
from legion.jobs.supervise.questions import QuestionSource
from legion.jobs.supervise.wait import CrashPoints
from legion.jobs.trees import ProjectContext
from legion.store.board import crews
from legion.store.database.transactions import Transaction
from legion.store.work import runs, takeovers, usage
from legion.system import crash
from legion.system.crash import Point

LONGEST = 8000
"""Characters of an advice that are kept: they are part of the builder's briefing."""
_CUT = "\n[... cut ...]"
LAUNCH_POINTS = CrashPoints(before=Point.RUN_BEFORE_LAUNCH, after=Point.RUN_AFTER_LAUNCH)
"""Of a ticket's advisers and its builder."""


def start(tx: Transaction, ticket: Ticket, machine: str = "") -> Run:
    """The run of the first role whose advice is missing, else of the builder.

    `machine`: where, unless a person is at its side; empty: on the head.

    A ticket that was escalated starts a new conversation in every role, and a neutral hand one of its own.
    """
    stage = teams.at_turn(tx, ticket, crews.get(tx, ticket.spec.crew))
    role, part = (stage.key, RolePart.ADVISE) if stage.part is RolePart.ADVISE else ("", RolePart.BUILD)
    before = runs.latest(tx, ticket.id, role)
    here = takeovers.of_ticket(tx, ticket.id) is not None
    this_run = runs.start(tx, ticket.id, ticket.attempt, role=role, part=part, machine="" if here else machine)
    fresh = (ticket.spec.climbs and ladder.begins(ticket)) or (
        not role and escalation.is_neutral(tx, ticket, begins=True)
    )
    if fresh and before is not None and before.attempt < ticket.attempt:
        runs.renew_conversation(tx, this_run.id)
    return this_run


@dataclass(frozen=True, kw_only=True)
class AdvisorEnd:
    """What came of an adviser's run."""

    detail: str
    step: Step
    advice: Advice | None = None
    rest: Park | None = None


def conclude(context: Board, ticket: Ticket, this_run: Run, made: RunOutcome) -> AdvisorEnd:
    """A failed adviser costs an attempt; its failure is no feedback for the builder."""
    outcome, detail = made.outcome, made.detail
    given = outcome in (Outcome.FINISHED, Outcome.GAVE_UP)
    message = final_message(context.data.runs / this_run.name).strip() if given else ""
    if message:
        turn = turn_of(ladder.place(ticket))
        text = message if len(message) <= LONGEST else message[:LONGEST] + _CUT
        advice = Advice(ticket=ticket.id, turn=turn, role=this_run.role, run=this_run.id, text=text)
        return AdvisorEnd(detail="advised", step=Resume(f"{this_run.role} has advised"), advice=advice)
    if given:
        step: Step = next_try(ticket, f"{this_run.role} gave no advice", "")
    elif outcome in (Outcome.FAILED, Outcome.TIMED_OUT):
        step = next_try(ticket, f"{this_run.role} gave no advice: its program failed ({detail})", "")
    else:
        unfinished = judging.unfinished(context, ticket, this_run, made.ended)
        assert unfinished is not None, "every other outcome is an unfinished run"
        step = unfinished
    return AdvisorEnd(detail=detail, step=step, rest=judging.rest_after(context, ticket, made.ended, step))


def agent_run(
    context: Context, project: ProjectContext, ticket: Ticket, this_run: Run, wanted: Callable[[], bool]
) -> AgentRun:
    crew = teams.of_ticket(context, ticket)
    stage = crew.stage(this_run.role)
    assert stage is not None, "a ticket keeps its crew"

    def tree(place: Workplace) -> Path:
        crash.reach(Point.ADVISE_BEFORE_WORKTREE)
        made = executor.checkout(project, this_run, place)
        crash.reach(Point.ADVISE_AFTER_WORKTREE)
        return made

    return AgentRun(
        run=this_run,
        place=lambda: _place(context, project, ticket, stage),
        tree=tree,
        prepared=lambda _: _input(context, project, ticket, stage, crew),
        wanted=wanted,
        source=QuestionSource(project=ticket.project, ticket=ticket.id),
        launch_points=LAUNCH_POINTS,
    )


def _place(context: Board, project: ProjectContext, ticket: Ticket, stage: TeamStage) -> Workplace:
    """The tree as the builder will find it. Dependencies only for a role that could run something."""
    assert ticket.base is not None, "a started ticket has a base"
    with context.store.read() as tx:
        saved = [run.saved for run in runs.of_ticket(tx, ticket.id, role="") if run.saved is not None]
    return Workplace(
        program=_program(context, project, ticket, stage),
        title=ticket.spec.title,
        base=ticket.base,
        start=saved[-1] if saved and ticket.plant is None else None,
        plant=ticket.plant,
        has_setup=stage.tools is None or bool(stage.tools - READING),
        filters_of=ticket.base,
        variables={"LEGION_ROLE": stage.key},
    )


def _program(context: Board, project: ProjectContext, ticket: Ticket, stage: TeamStage) -> AgentProgram:
    return spec.choose_program(context, project.config, "", stage.role.driver or ticket.spec.driver)


def _input(context: Board, project: ProjectContext, ticket: Ticket, stage: TeamStage, crew: Crew) -> PreparedInput:
    with context.store.read() as tx:
        tried, earlier = escalation.tried(tx, ticket), teams.advice_for_builder(tx, ticket)
        spent = usage.of_ticket(tx, ticket.id).usd
    others = [one for one in earlier if one.role != stage.key]
    prompt = advice_prompt(ticket, project.config, tried, others)
    given = RunInput(
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
    return PreparedInput(program=_program(context, project, ticket, stage), input=given)
