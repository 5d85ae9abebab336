"""The serve job: one turn of a standing agent. Its mail becomes one prompt; its final message goes to its parent.

Steps, each of which may find its work done already: worktree, setup, spec, runner, wait, save, conclude. The turn's
row and its batch of mail are written in the transaction that claims the job, so that every later start sees the same.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path

from legion.domain.agents.agent import ROOT, Agent, ClaimedTicket, is_leader, own_tools
from legion.domain.agents.mail import MessageKind
from legion.domain.errors import StateConflict
from legion.domain.leader.briefing import NOTHING
from legion.domain.questions import QuestionKind
from legion.domain.runs import Outcome, Run, agent_seat
from legion.domain.scheduling.after_turn import RESUMED_OUTCOMES, EndTurn, ResumeAt, ResumeTurn, RetryTurn, after_turn
from legion.domain.scheduling.decide import Claim
from legion.domain.scheduling.throttle import apart, wakes_at
from legion.domain.tickets.ticket import AskReview, Fail, Propose, Prove, TryAgain
from legion.drivers.profile import RunInput
from legion.git.core.errors import TreeGone
from legion.jobs.agent import mail_prompt, model_run, plan_approval, preparation, resume_prompt, tool_access
from legion.jobs.agent.mail_prompt import CutOffTurn
from legion.jobs.agent.model_access import NoModelAccess
from legion.jobs.agent.model_run import AgentProgram, RunPaths
from legion.jobs.agent.resume_prompt import final_messages
from legion.jobs.agent.spec import NoProgram
from legion.jobs.board import Board
from legion.jobs.checks import job
from legion.jobs.context import Context
from legion.jobs.filter_sandbox import NoSandbox
from legion.jobs.leader import turn
from legion.jobs.leader.turn import LeaderTexts
from legion.jobs.supervise import wait
from legion.jobs.supervise.outcome import denied, first_paths, judge_change, listener, resets_at, run_outcome
from legion.jobs.supervise.questions import QuestionSource
from legion.jobs.supervise.wait import CrashPoints, RunEnd, finish
from legion.jobs.trees import ProjectContext, Trees
from legion.jobs.turn import claimed_tickets, delivery, wheel
from legion.jobs.turn.delivery import DeliveryTracker
from legion.jobs.workspace import environment, sandbox, setup
from legion.jobs.workspace.environment import WorkspaceEnv
from legion.jobs.workspace.save import save, save_turn
from legion.runner.journal import JournalEvent, read_journal
from legion.runner.launch import EndedRun, LostRun
from legion.runner.spec import RunSpec, write_spec
from legion.store.board import projects, questions, tickets
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.store.staff import agents, mail, ticket_holders
from legion.store.work import claims, runs, usage
from legion.system import crash
from legion.system.crash import Point

_POINTS = CrashPoints(before=Point.SERVE_BEFORE_CONCLUDE, after=Point.SERVE_AFTER_CONCLUDE)
_REFUSED_PAUSE = 120.0
"""Seconds until a provider that refused a key is asked again: a person has to fix that."""
_TOO_LATE = "fired before its program was started"
_LONGEST_FACT = 300


@dataclass(frozen=True, kw_only=True)
class TurnEnd:
    """How a turn ended."""

    outcome: Outcome
    detail: str
    saved: str | None = None
    until: float | None = None
    """When a limit ends."""
    holding: ClaimedTicket | None = None
    """The ticket that was submitted in it."""
    step: Propose | TryAgain | Fail | None = None
    """What becomes of that ticket."""
    then: Prove | AskReview | None = None
    """The step after that, where no check has to run before the merge queue and no one has to be asked."""


def begin(tx: Transaction, number: int) -> None:
    """Start a turn with the mail that fits into one prompt, unless one runs. Raises StateConflict if none is due."""
    agent = agents.numbered(tx, number)
    latest = _latest(tx, agent)
    if latest is not None and latest.ended_at is None:
        return
    if agent.fired_at is not None:
        raise StateConflict(f"{agent.name} was fired meanwhile.")
    prompt = str(uuid.uuid4())
    if not mail.offer(tx, agent.id, prompt) and not agent.owes:
        raise StateConflict(f"There is nothing to do for {agent.name}.")
    if agent.base is None:
        agents.plant(tx, agent, projects.get(tx, agent.project).target)
    agents.hold(tx, agent, owes=agent.owes)
    runs.start_turn(tx, agent, prompt)


def serve(context: Context, claim: Claim) -> None:
    with context.store.read() as tx:
        agent = agents.numbered(tx, claim.subject)
        this_run = _latest(tx, agent)
    assert this_run is not None, "a turn's row is written in the transaction that claims the job"
    if this_run.ended_at is not None:
        with context.store.write() as tx:
            claims.finish(tx, claim)
        return
    project = context.project(agent.project)
    end = TurnEnd(outcome=Outcome.STOPPED, detail=_TOO_LATE)
    try:
        ended = _run_to_end(context, project, agent, this_run)
    except (NoProgram, NoSandbox) as missing:
        ended, end = None, TurnEnd(outcome=Outcome.NOT_STARTED, detail=missing.message)
    except NoModelAccess as missing:
        ended, end = None, TurnEnd(outcome=Outcome.REFUSED, detail=missing.message)
    if ended is not None:
        end = _save(context, project, agent, this_run, ended)
    conclude(context, project, claim, agent, this_run, end)


def _save(context: Trees, project: ProjectContext, agent: Agent, this_run: Run, ended: EndedRun | LostRun) -> TurnEnd:
    """Save the tree, and judge it where the agent has submitted it as a ticket's change."""
    outcome, detail = run_outcome(ended)
    end = TurnEnd(outcome=outcome, detail=detail, until=resets_at(context, this_run, ended))
    with context.store.read() as tx:
        agent = agents.get(tx, agent.id)
        held = ticket_holders.current(tx, agent.id)
        ticket = tickets.get(tx, held.ticket) if held is not None and held.planted else None
    tree = project.worktrees.path(this_run.seat)
    try:
        if held is None or ticket is None:
            return replace(end, saved=save_turn(context, project, agent, this_run, tree))
        saved = save(context, project, ticket, this_run, tree)
    except TreeGone as gone:
        return replace(end, detail=f"{detail}; {gone.message}")
    if held.submitted and outcome is Outcome.FINISHED:
        step = judge_change(context, project, ticket, saved, denied(ended))
        then = (
            job.next_step_without_checks(context, project, ticket, step.change) if isinstance(step, Propose) else None
        )
        end = replace(end, holding=held, step=step, then=then)
    if saved.unsaved:
        end = replace(end, detail=f"{detail}; not part of the change: {first_paths(saved.unsaved)}")
    return replace(end, saved=saved.commit)


def _latest(tx: ReadTransaction, agent: Agent) -> Run | None:
    return next(iter(runs.of_agent(tx, agent.number, limit=1)), None)


def _run_to_end(context: Context, project: ProjectContext, agent: Agent, this_run: Run) -> EndedRun | LostRun | None:
    return wait.run_to_end(
        context,
        this_run,
        wanted=lambda: _wanted(context, agent, this_run),
        prepare=lambda: _prepare(context, project, agent, this_run),
        launch_points=CrashPoints(before=Point.SERVE_BEFORE_LAUNCH, after=Point.SERVE_AFTER_LAUNCH),
        on_event=_listener(context, project, agent, this_run),
    )


def _listener(context: Board, project: ProjectContext, agent: Agent, this_run: Run) -> Callable[[JournalEvent], None]:
    tracker = DeliveryTracker(context, agent, delivery.state_folder(project, this_run.seat))
    source = QuestionSource(project=agent.project, agent=agent.id)
    handle_rest = listener(context, source, this_run)

    def handle(event: JournalEvent) -> None:
        tracker.handle(event)
        handle_rest(event)

    return handle


def _wanted(context: Board, agent: Agent, this_run: Run) -> bool:
    """False for an agent that was fired, and for a turn that opens for a person who gave up."""
    with context.store.read() as tx:
        return agents.get(tx, agent.id).fired_at is None and wheel.is_wanted(context, tx, agent, this_run)


def _prepare(context: Context, project: ProjectContext, agent: Agent, this_run: Run) -> None:
    """Worktree, dependencies, prompt, spec."""
    crash.reach(Point.SERVE_BEFORE_WORKTREE)
    agent = claimed_tickets.reset_worktree(context, project, agent, this_run)
    if is_leader(agent):
        agent = turn.prepare(context, project, agent, this_run)
    with context.store.read() as tx:
        agent = plan_approval.reader(tx, agent)
    assert agent.base is not None, "a turn has a base"
    tree = project.worktrees.acquire(this_run.seat, agent.base, f"legion/{this_run.seat}")
    setup.ensure(context, project, tree, base=agent.base)
    env = environment.prepare(context, project, this_run, tree)
    folder = context.data.runs / this_run.name
    given = folder / "given"
    given.mkdir(parents=True, exist_ok=True)
    write_spec(folder, _spec(context, project, agent, this_run, tree, given, env))


def _spec(
    context: Context,
    project: ProjectContext,
    agent: Agent,
    this_run: Run,
    tree: Path,
    given: Path,
    workspace: WorkspaceEnv,
) -> RunSpec:
    state = project.agents / this_run.seat
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    access = tool_access.of_agent(context, agent, this_run, given)
    env = sandbox.environment(context, project, {"LEGION_STATE": str(state), **workspace.env})
    env |= access.env(env.get("PATH", ""))
    readable = (given, mail_prompt.long_mail_folder(project, this_run.seat), *access.readable)
    box = sandbox.sandbox(context, project, writable=(tree, state, *workspace.writable), readable=readable)
    paths = RunPaths(tree=tree, state=state, given=given, env=env, sandbox=box)
    chosen = AgentProgram(driver=preparation.profile(agent), timeout=project.config.agents.timeout)
    run_input = replace(_input(context, project, agent, this_run), tool_link=access.link)
    with context.store.read() as tx:
        attended = wheel.attendance(tx, agent, this_run)
    return model_run.spec(context, this_run, chosen, run_input, paths, attended)


def _input(context: Board, project: ProjectContext, agent: Agent, this_run: Run) -> RunInput:
    with context.store.read() as tx:
        names = agents.names(tx)
        batch = mail.of_batch(tx, agent.id, this_run.prompt)
        spent = usage.of_agent(tx, agent.number).usd
        money = agents.all_means(tx, context.user.standing.top)[agent.id].money
    cut = _cut_off(context, this_run) if agent.owes else None
    folder = mail_prompt.long_mail_folder(project, this_run.seat)
    texts = turn.texts(context, agent) if is_leader(agent) else LeaderTexts()
    return RunInput(
        prompt=mail_prompt.prompt(agent, names, batch, folder, cut=cut, fresh=True, head=texts.fresh),
        resume_prompt=mail_prompt.prompt(agent, names, batch, folder, cut=cut, fresh=False, head=texts.resumed),
        rules=mail_prompt.rules(agent, names, texts.rules),
        model=agent.model,
        role=agent.role,
        tools=_tools(agent),
        allowance=None if money is None else spent + money,
        spent=spent,
        prompt_id=this_run.prompt,
        streams=is_leader(agent),
    )


def _tools(agent: Agent) -> frozenset[str] | None:
    """The tools of its program: none where it delegates, and only those that read until its plan is approved."""
    if agent.delegates:
        return frozenset()
    if is_leader(agent):
        return own_tools(agent.rights.tools)
    return plan_approval.only_reading(agent.rights.tools) if agent.only_reads else agent.rights.tools


def _cut_off(context: Board, this_run: Run) -> CutOffTurn:
    """What the turns since the last completed one left open."""
    since = _since_completed(context, this_run)
    events = [event for run in since for event in read_journal(context.data.runs / run.name)]
    return CutOffTurn(outcome=since[-1].outcome if since else None, calls=resume_prompt.open_calls(events))


def _since_completed(context: Board, this_run: Run) -> list[Run]:
    """The earlier turns that this one continues, oldest first."""
    with context.store.read() as tx:
        earlier = [run for run in runs.of_seat(tx, this_run) if run.id < this_run.id]
    return list(takewhile(lambda run: run.outcome in RESUMED_OUTCOMES, reversed(earlier)))[::-1]


def conclude(
    context: Context, project: ProjectContext, claim: Claim, agent: Agent, this_run: Run, end: TurnEnd
) -> None:
    """Turn, mail and claim change together, and the parent's mail is sent in the same transaction."""
    report = _final_message(context, this_run)
    state = delivery.state_folder(project, this_run.seat)
    with context.store.read() as tx:
        offered = {message.batch for message in mail.offered(tx, agent.id)} | {this_run.prompt}
    arrived = delivery.delivered(state, agent, offered)
    arrived |= offered & delivery.in_ended_turn(read_journal(context.data.runs / this_run.name), end.outcome)
    size = turn.size(project, agent, this_run.seat) if is_leader(agent) else None
    onward = delivery.continuation(context, project, agent, this_run) if end.outcome is Outcome.FINISHED else None

    def record(tx: Transaction, detail: str) -> None:
        current = agents.get(tx, agent.id)
        delivery.settle(tx, current, arrived)
        if current.fired_at is not None:
            return
        if size is not None:
            turn.record(tx, current, delivered=this_run.prompt in arrived, size=size)
        if wheel.settle(context, tx, current, this_run, end.outcome):
            return
        _follow_up(tx, current, this_run, replace(end, detail=detail), report, started=this_run.prompt in arrived)
        wheel.call_again(tx, agents.get(tx, agent.id))
        if end.holding is not None and end.step is not None:
            claimed_tickets.conclude(tx, current, end.holding, end.step, end.then)
        if onward is not None:
            mail.send(tx, sender=ROOT, recipient=agent.id, text=onward, project=agent.project)
            return
        if end.outcome is Outcome.FINISHED and claimed_tickets.leaves(tx, current, report):
            claimed_tickets.dismiss(tx, current, by=current.parent, subtree=False, in_a_turn=())

    run_end = RunEnd(outcome=end.outcome, detail=end.detail, saved=end.saved)
    if not finish(context, claim, this_run, run_end, record, _POINTS):
        return
    with context.store.read() as tx:
        fired = agents.get(tx, agent.id).fired_at is not None
    if fired:
        project.worktrees.discard(agent_seat(agent.number))


def _follow_up(tx: Transaction, agent: Agent, this_run: Run, end: TurnEnd, report: str, *, started: bool) -> None:
    failed_starts = _failed_starts(tx, agent)
    match after_turn(end.outcome, started=started, generation=this_run.generation, failed_starts=failed_starts):
        case ResumeTurn(at=at):
            until = _resume_time(tx, agent, at, end.until)
            agents.hold(tx, agent, owes=agent.owes or started, until=until, why=end.detail)
        case RetryTurn(pause=pause, report=inform):
            agents.hold(tx, agent, owes=agent.owes, until=tx.now + pause, why=end.detail)
            if inform:
                text = f"{agent.name} cannot start its turn, and tries again from time to time: {end.detail}."
                _mail_parent(tx, agent, text, MessageKind.NOTICE)
        case EndTurn() as over:
            agents.hold(tx, agent, owes=False)
            if over.report and not (is_leader(agent) and over.completed and report.strip() == NOTHING):
                text = report or "It ended its turn without a message."
                if not over.completed:
                    text = _incomplete(agent, end.detail, report)
                _mail_parent(tx, agent, text, MessageKind.RESULT)
            if over.ask_budget and agent.rights.budget is not None:
                _ask_for_money(tx, agent, this_run, agent.rights.budget)


def _incomplete(agent: Agent, detail: str, report: str) -> str:
    """A program's final message often repeats the reason of its end."""
    repeats = " ".join(report.split()).startswith(detail[:200])
    more = f"\n\n{report}" if report and not repeats else ""
    return f"{agent.name} did not complete its turn: {detail}.{more}"


def _ask_for_money(tx: Transaction, agent: Agent, this_run: Run, budget: float) -> None:
    """Once for each stop: only the person can raise the budget that the agent was hired with."""
    questions.withdraw(tx, agent=agent.id, kind=QuestionKind.BUDGET, why="it was asked again")
    questions.ask(
        tx,
        key=f"budget:{agent.id}:{this_run.id}",
        kind=QuestionKind.BUDGET,
        project=agent.project,
        agent=agent.id,
        words=f"{agent.name} has spent its budget of ${budget:.2f}. Shall it get as much again?",
        facts={"task": agent.task[:_LONGEST_FACT]},
        deadline=tx.now + plan_approval.PATIENCE,
    )


def _mail_parent(tx: Transaction, agent: Agent, text: str, kind: MessageKind) -> None:
    mail.send(tx, sender=agent.id, recipient=agent.parent, kind=kind, text=text, project=agent.project)


def _failed_starts(tx: Transaction, agent: Agent) -> int:
    """How many turns in a row, this one included, did not end by themselves."""
    count = 0
    for run in reversed(runs.of_agent(tx, agent.number)):
        if run.outcome in (Outcome.FINISHED, Outcome.INTERRUPTED):
            break
        count += 1
    return max(1, count)


def _resume_time(tx: Transaction, agent: Agent, at: ResumeAt, reset: float | None) -> float | None:
    match at:
        case ResumeAt.NOW:
            return None
        case ResumeAt.PROVIDER_FIXED:
            return tx.now + _REFUSED_PAUSE
        case ResumeAt.LIMIT_RESET:
            others = [other.held_until for other in agents.standing(tx) if other.held_until is not None]
            return apart(wakes_at(tx.now, reset, runs.of_agent(tx, agent.number)), others)


def _final_message(context: Board, this_run: Run) -> str:
    """If the runner of an earlier turn died after its final message, that message was not delivered yet."""
    lost = [run for run in _since_completed(context, this_run) if run.outcome is Outcome.LOST]
    return final_messages(event for run in (*lost, this_run) for event in read_journal(context.data.runs / run.name))
