"""The serve job: one turn of a standing agent. Its mailbox becomes one prompt; what it says last goes to its parent.

Steps, each of which may find its work done already: worktree, setup, spec, runner, wait, save, conclude. The turn's
row and its batch of mail are written in the transaction that claims the job, so that every later start sees the same.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path

from legion.domain.agents.agent import Agent
from legion.domain.agents.claimed_tickets import ClaimedTicket
from legion.domain.agents.mail import MessageKind
from legion.domain.errors import StateConflict
from legion.domain.questions import QuestionKind
from legion.domain.runs import MOST_GENERATIONS, Outcome, Run, agent_seat
from legion.domain.scheduling.claims import Claim
from legion.domain.scheduling.limit_waits import apart, wakes_at
from legion.domain.tickets.ticket import AskReview, Fail, Propose, Prove, TryAgain
from legion.drivers.claude.options import heard_of
from legion.git.core.errors import TreeGone
from legion.jobs.agent import claude, mail_prompt, plan_approval, tool_access
from legion.jobs.agent.claude import RunInput
from legion.jobs.agent.mail_prompt import CutOffTurn
from legion.jobs.checks import job
from legion.jobs.context import Context, ProjectContext
from legion.jobs.supervise import journal_events, wait
from legion.jobs.supervise import outcome as judging
from legion.jobs.supervise import questions as asking
from legion.jobs.supervise.usage import stopped_for_budget
from legion.jobs.turn import claimed_tickets, delivery, dismissal
from legion.jobs.turn.delivery import DeliveryTracker
from legion.jobs.workspace import environment, quota, sandbox, setup
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

_GOES_ON = (Outcome.LOST, Outcome.LIMITED, Outcome.REFUSED)
"""Nobody's decision: the turn goes on by itself when it can."""
_REFUSED_PAUSE = 120.0
"""Seconds until a provider that refused a key is asked again: a person has to mend that."""
_FIRST_PAUSE, _LONGEST_PAUSE = 5.0, 600.0
"""Seconds before the next turn where one did not even begin: twice as long each time."""
_SAID_AFTER = 3
"""So many turns in vain are worth a word to the parent."""
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
    """Where nothing has to be run on its change before the merge queue does, and nobody has to be asked."""


def begin(tx: Transaction, number: int) -> None:
    """A turn with all the mail that one prompt holds, unless one has begun already. Raises Conflict if none is due."""
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
    project_context = context.workshop(agent.project)
    ended = _end(context, project_context, agent, this_run)
    if ended is None:
        conclude(context, project_context, claim, agent, this_run, TurnEnd(outcome=Outcome.STOPPED, detail=_TOO_LATE))
        return
    conclude(context, project_context, claim, agent, this_run, _saved(context, project_context, agent, this_run, ended))


def _saved(
    context: Context, project_context: ProjectContext, agent: Agent, this_run: Run, ended: EndedRun | LostRun
) -> TurnEnd:
    """What lies in the tree is saved, and judged where the agent has submitted it as a ticket's change."""
    outcome, detail = judging.outcome(ended)
    end = TurnEnd(outcome=outcome, detail=detail, until=judging.resets_at(context, this_run, ended))
    with context.store.read() as tx:
        agent = agents.get(tx, agent.id)
        held = ticket_holders.current(tx, agent.id)
        ticket = tickets.get(tx, held.ticket) if held is not None and held.planted else None
    tree = project_context.worktrees.path(this_run.seat)
    try:
        if held is None or ticket is None:
            return replace(end, saved=save_turn(context, project_context, agent, this_run, tree))
        saved = save(context, project_context, ticket, this_run, tree)
    except TreeGone as gone:
        return replace(end, detail=f"{detail}; {gone.message}")
    if held.submitted and outcome is Outcome.FINISHED:
        step = judging.judge_change(context, project_context, ticket, saved, detail)
        then = (
            job.next_step_without_checks(context, project_context, ticket, step.change)
            if isinstance(step, Propose)
            else None
        )
        return replace(end, saved=saved.commit, holding=held, step=step, then=then)
    return replace(end, saved=saved.commit)


def _latest(tx: ReadTransaction, agent: Agent) -> Run | None:
    return next(iter(runs.of_agent(tx, agent.number, limit=1)), None)


def _end(context: Context, project_context: ProjectContext, agent: Agent, this_run: Run) -> EndedRun | LostRun | None:
    def start() -> None:
        crash.reach(Point.SERVE_BEFORE_LAUNCH)
        context.launcher.start(context.data.runs / this_run.name)
        crash.reach(Point.SERVE_AFTER_LAUNCH)

    return wait.run_to_end(
        context,
        this_run,
        wanted=lambda: _stands(context, agent),
        prepare=lambda: _prepare(context, project_context, agent, this_run),
        start=start,
        hear=_listener(context, project_context, agent, this_run),
    )


def _listener(
    context: Context, project_context: ProjectContext, agent: Agent, this_run: Run
) -> Callable[[JournalEvent], None]:
    ear = DeliveryTracker(context, agent, delivery.config_dir(project_context, this_run.seat))
    ask = journal_events.listener(context, asking.QuestionSource(project=agent.project, agent=agent.id), this_run)

    def hear(event: JournalEvent) -> None:
        ear.hear(event)
        ask(event)

    return hear


def _stands(context: Context, agent: Agent) -> bool:
    with context.store.read() as tx:
        return agents.get(tx, agent.id).fired_at is None


def _prepare(context: Context, project_context: ProjectContext, agent: Agent, this_run: Run) -> None:
    """Worktree, dependencies, prompt, spec."""
    crash.reach(Point.SERVE_BEFORE_WORKTREE)
    agent = claimed_tickets.plant(context, project_context, agent, this_run)
    with context.store.read() as tx:
        agent = plan_approval.reader(tx, agent)
    assert agent.base is not None, "a turn begins on a base"
    tree = project_context.worktrees.acquire(this_run.seat, agent.base, f"legion/{this_run.seat}")
    setup.ensure(context, project_context, tree, setup.record_of(project_context, tree))
    around = environment.prepare(context, project_context, this_run, tree)
    folder = context.data.runs / this_run.name
    given = folder / "given"
    given.mkdir(parents=True, exist_ok=True)
    write_spec(folder, _spec(context, project_context, agent, this_run, tree, given, around))


def _spec(
    context: Context,
    project_context: ProjectContext,
    agent: Agent,
    this_run: Run,
    tree: Path,
    given: Path,
    around: WorkspaceEnv,
) -> RunSpec:
    state = project_context.agents / this_run.seat
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    entry = tool_access.of_agent(context, agent, this_run, given)
    env = sandbox.environment(context, {"LEGION_STATE": str(state), **around.env})
    env |= entry.env(env.get("PATH", ""))
    readable = (given, mail_prompt.long_ones(project_context, this_run.seat), *entry.readable)
    walls = sandbox.sandbox(context, project_context, writable=(tree, state, *around.writable), readable=readable)
    place = claude.RunPaths(tree=tree, state=state, given=given, env=env, walls=walls)
    errand = replace(_errand(context, project_context, agent, this_run), desk=entry.desk)
    return claude.spec(context, this_run, errand, place, project_context.config.agents.timeout)


def _errand(context: Context, project_context: ProjectContext, agent: Agent, this_run: Run) -> RunInput:
    with context.store.read() as tx:
        names = agents.names(tx)
        batch = mail.of_batch(tx, agent.id, this_run.prompt)
        spent = usage.of_agent(tx, agent.number).usd
        money = agents.all_means(tx, context.user.standing.top)[agent.id].money
    cut = _cut_off(context, this_run) if agent.owes else None
    folder = mail_prompt.long_ones(project_context, this_run.seat)
    return RunInput(
        prompt=mail_prompt.prompt(agent, names, batch, folder, cut=cut, fresh=True),
        again=mail_prompt.prompt(agent, names, batch, folder, cut=cut, fresh=False),
        rules=mail_prompt.rules(agent, names),
        model=agent.model,
        role=agent.role,
        tools=_tools(agent),
        allowance=None if money is None else spent + money,
        spent=spent,
        prompt_id=this_run.prompt,
    )


def _tools(agent: Agent) -> frozenset[str] | None:
    """Of its program's own: none where it only leads, and only those that read until its plan is approved."""
    if agent.delegates:
        return frozenset()
    return plan_approval.only_reading(agent.rights.tools) if agent.only_reads else agent.rights.tools


def _cut_off(context: Context, this_run: Run) -> CutOffTurn:
    """What the turns since the last whole one left open."""
    since = _since_whole(context, this_run)
    events = [event for run in since for event in read_journal(context.data.runs / run.name)]
    return CutOffTurn(outcome=since[-1].outcome if since else None, calls=claude.cut_off(events))


def _since_whole(context: Context, this_run: Run) -> list[Run]:
    """The turns that this one goes on with, oldest first."""
    with context.store.read() as tx:
        earlier = [run for run in runs.of_seat(tx, this_run) if run.id < this_run.id]
    return list(takewhile(lambda run: run.outcome in _GOES_ON, reversed(earlier)))[::-1]


def conclude(
    context: Context,
    project_context: ProjectContext,
    claim: Claim,
    agent: Agent,
    this_run: Run,
    end: TurnEnd,
) -> None:
    """Turn, mail and claim change together, and the parent hears of it in the same transaction."""
    if end.outcome is Outcome.STOPPED and (over := quota.exceeded(context, this_run)) is not None:
        end = replace(end, detail=over.reason)
    elif end.outcome is Outcome.STOPPED and (empty := stopped_for_budget(context, this_run)):
        end = replace(end, detail=empty)
    elif end.outcome is Outcome.STOPPED and (helped := judging.ended_by(context, this_run)) is not None:
        end = replace(end, detail=helped.why)
    said = _last_words(context, this_run)
    environment.release(context, this_run, end.outcome)
    claude.revoke_pass(context, this_run)
    asking.close_all(context, this_run)
    with context.store.read() as tx:
        offered = {message.batch for message in mail.offered(tx, agent.id)} | {this_run.prompt}
    heard = heard_of(delivery.config_dir(project_context, this_run.seat), agent.id, offered)
    crash.reach(Point.SERVE_BEFORE_CONCLUDE)
    with context.store.write() as tx:
        if not claims.still_mine(tx, claim):
            return
        agent = agents.get(tx, agent.id)
        runs.end(tx, this_run.id, end.outcome, end.detail, end.saved)
        delivery.settle(tx, agent, heard)
        if agent.fired_at is None:
            _go_on_or_tell(tx, agent, this_run, end, said, begun=this_run.prompt in heard)
            if end.holding is not None and end.step is not None:
                claimed_tickets.conclude(tx, agent, end.holding, end.step, end.then)
            if end.outcome is Outcome.FINISHED and dismissal.leaves(tx, agent, said):
                agent = dismissal.dismiss(tx, agent, by=agent.parent, subtree=False, in_a_turn=()).fired[0]
        claims.finish(tx, claim)
    crash.reach(Point.SERVE_AFTER_CONCLUDE)
    if agent.fired_at is not None:
        project_context.worktrees.discard(agent_seat(agent.number))


def _go_on_or_tell(tx: Transaction, agent: Agent, this_run: Run, end: TurnEnd, said: str, *, begun: bool) -> None:
    outcome, detail = end.outcome, end.detail
    given_up = outcome is Outcome.LOST and this_run.generation >= MOST_GENERATIONS
    if outcome in _GOES_ON and not given_up:
        until = _wakes_at(tx, agent, outcome, end.until)
        agents.hold(tx, agent, owes=agent.owes or begun, until=until, why=detail)
        return
    if not begun and outcome not in (Outcome.FINISHED, Outcome.INTERRUPTED):
        # Its mail waits for the next turn, which would fail as this one did if it began at once.
        in_vain = _in_vain(tx, agent)
        pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (in_vain - 1))
        agents.hold(tx, agent, owes=agent.owes, until=tx.now + pause, why=detail)
        if in_vain == _SAID_AFTER:
            words = f"{agent.name} cannot begin its turn, and tries again from time to time: {detail}."
            _tell_parent(tx, agent, words, MessageKind.NOTICE)
        return
    agents.hold(tx, agent, owes=False)
    if outcome is Outcome.INTERRUPTED:
        # Whoever interrupted it knows, and so does its parent.
        return
    if outcome is Outcome.FINISHED:
        text = said or "It ended its turn without a word."
    else:
        # What a program says last is often the reason itself.
        told = " ".join(said.split())
        words = f"\n\n{said}" if said and not told.startswith(detail[:200]) else ""
        text = f"{agent.name} did not come to the end of its turn: {detail}.{words}"
    _tell_parent(tx, agent, text, MessageKind.RESULT)
    if outcome is Outcome.OUT_OF_BUDGET and agent.rights.budget is not None:
        _ask_for_money(tx, agent, this_run, agent.rights.budget)


def _ask_for_money(tx: Transaction, agent: Agent, this_run: Run, budget: float) -> None:
    """Once for each stop: nobody but the person can raise what was given at the hire."""
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


def _tell_parent(tx: Transaction, agent: Agent, text: str, kind: MessageKind) -> None:
    mail.send(tx, sender=agent.id, recipient=agent.parent, kind=kind, text=text, project=agent.project)


def _in_vain(tx: Transaction, agent: Agent) -> int:
    """How many turns in a row, this one included, did not come to an end of their own."""
    count = 0
    for run in reversed(runs.of_agent(tx, agent.number)):
        if run.outcome in (Outcome.FINISHED, Outcome.INTERRUPTED):
            break
        count += 1
    return max(1, count)


def _wakes_at(tx: Transaction, agent: Agent, outcome: Outcome, until: float | None) -> float | None:
    if outcome is Outcome.LOST:
        return None
    if outcome is Outcome.REFUSED:
        return tx.now + _REFUSED_PAUSE
    others = [other.held_until for other in agents.standing(tx) if other.held_until is not None]
    return apart(wakes_at(tx.now, until, runs.of_agent(tx, agent.number)), others)


def _last_words(context: Context, this_run: Run) -> str:
    """What it said at the end of each of its answers; more than one where it was told something on the way.

    A turn that was lost behind its last word has told nobody yet.
    """
    lost = [run for run in _since_whole(context, this_run) if run.outcome is Outcome.LOST]
    events = [event for run in (*lost, this_run) for event in read_journal(context.data.runs / run.name)]
    said = [str(event.facts.get("text") or "").strip() for event in events if event.kind == "result"]
    return "\n\n".join(dict.fromkeys(text for text in said if text))
