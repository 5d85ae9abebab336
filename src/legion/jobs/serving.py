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

from legion.domain.agents import Agent
from legion.domain.errors import Conflict
from legion.domain.holdings import Holding
from legion.domain.jobs import Claim
from legion.domain.limits import apart, wakes_at
from legion.domain.mail import Post
from legion.domain.questions import Matter
from legion.domain.runs import MOST_GENERATIONS, Outcome, Run, agent_seat
from legion.domain.tickets import AskReview, Fail, Propose, Prove, TryAgain
from legion.drivers.claude.options import heard_of
from legion.git.errors import TreeGone
from legion.jobs import (
    asking,
    attending,
    check,
    claude,
    desk,
    environment,
    hearing,
    holding,
    judging,
    leaving,
    letters,
    listening,
    pacing,
    places,
    planning,
    quota,
    setup,
)
from legion.jobs.claude import Errand
from legion.jobs.environment import Surroundings
from legion.jobs.hearing import Ear
from legion.jobs.letters import CutOff
from legion.jobs.saving import save, save_turn
from legion.jobs.world import Workshop, World
from legion.runner.journal import JournalEvent, read_journal
from legion.runner.launch import Ended, Lost
from legion.runner.spec import Spec, write_spec
from legion.store import agents, holdings, jobs, mail, projects, questions, runs, tickets, usage
from legion.store.database import ReadTransaction, Transaction
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
class End:
    """How a turn ended."""

    outcome: Outcome
    detail: str
    saved: str | None = None
    until: float | None = None
    """When a limit ends."""
    holding: Holding | None = None
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
        raise Conflict(f"{agent.name} was fired meanwhile.")
    prompt = str(uuid.uuid4())
    if not mail.offer(tx, agent.id, prompt) and not agent.owes:
        raise Conflict(f"There is nothing to do for {agent.name}.")
    if agent.base is None:
        agents.plant(tx, agent, projects.get(tx, agent.project).target)
    agents.hold(tx, agent, owes=agent.owes)
    runs.start_turn(tx, agent, prompt)


def serve(world: World, claim: Claim) -> None:
    with world.store.read() as tx:
        agent = agents.numbered(tx, claim.subject)
        this_run = _latest(tx, agent)
    assert this_run is not None, "a turn's row is written in the transaction that claims the job"
    if this_run.ended_at is not None:
        with world.store.write() as tx:
            jobs.finish(tx, claim)
        return
    shop = world.workshop(agent.project)
    ended = _end(world, shop, agent, this_run)
    if ended is None:
        conclude(world, shop, claim, agent, this_run, End(outcome=Outcome.STOPPED, detail=_TOO_LATE))
        return
    conclude(world, shop, claim, agent, this_run, _saved(world, shop, agent, this_run, ended))


def _saved(world: World, shop: Workshop, agent: Agent, this_run: Run, ended: Ended | Lost) -> End:
    """What lies in the tree is saved, and judged where the agent has submitted it as a ticket's change."""
    outcome, detail = judging.outcome(ended)
    end = End(outcome=outcome, detail=detail, until=judging.resets_at(world, this_run, ended))
    with world.store.read() as tx:
        agent = agents.get(tx, agent.id)
        held = holdings.current(tx, agent.id)
        ticket = tickets.get(tx, held.ticket) if held is not None and held.planted else None
    tree = shop.worktrees.path(this_run.seat)
    try:
        if held is None or ticket is None:
            return replace(end, saved=save_turn(world, shop, agent, this_run, tree))
        saved = save(world, shop, ticket, this_run, tree)
    except TreeGone as gone:
        return replace(end, detail=f"{detail}; {gone.message}")
    if held.submitted and outcome is Outcome.FINISHED:
        step = judging.judge_change(world, shop, ticket, saved, detail)
        then = check.at_once(world, shop, ticket, step.change) if isinstance(step, Propose) else None
        return replace(end, saved=saved.commit, holding=held, step=step, then=then)
    return replace(end, saved=saved.commit)


def _latest(tx: ReadTransaction, agent: Agent) -> Run | None:
    return next(iter(runs.of_agent(tx, agent.number, limit=1)), None)


def _end(world: World, shop: Workshop, agent: Agent, this_run: Run) -> Ended | Lost | None:
    def start() -> None:
        crash.reach(Point.SERVE_BEFORE_LAUNCH)
        world.launcher.start(world.data.runs / this_run.name)
        crash.reach(Point.SERVE_AFTER_LAUNCH)

    return attending.until_end(
        world,
        this_run,
        wanted=lambda: _stands(world, agent),
        prepare=lambda: _prepare(world, shop, agent, this_run),
        start=start,
        hear=_listener(world, shop, agent, this_run),
    )


def _listener(world: World, shop: Workshop, agent: Agent, this_run: Run) -> Callable[[JournalEvent], None]:
    ear = Ear(world, agent, hearing.config_dir(shop, this_run.seat))
    ask = listening.listener(world, asking.Asker(project=agent.project, agent=agent.id), this_run)

    def hear(event: JournalEvent) -> None:
        ear.hear(event)
        ask(event)

    return hear


def _stands(world: World, agent: Agent) -> bool:
    with world.store.read() as tx:
        return agents.get(tx, agent.id).fired_at is None


def _prepare(world: World, shop: Workshop, agent: Agent, this_run: Run) -> None:
    """Worktree, dependencies, prompt, spec."""
    crash.reach(Point.SERVE_BEFORE_WORKTREE)
    agent = holding.plant(world, shop, agent, this_run)
    with world.store.read() as tx:
        agent = planning.reader(tx, agent)
    assert agent.base is not None, "a turn begins on a base"
    tree = shop.worktrees.acquire(this_run.seat, agent.base, f"legion/{this_run.seat}")
    setup.ensure(world, shop, tree, setup.record_of(shop, tree))
    around = environment.prepare(world, shop, this_run, tree)
    folder = world.data.runs / this_run.name
    given = folder / "given"
    given.mkdir(parents=True, exist_ok=True)
    write_spec(folder, _spec(world, shop, agent, this_run, tree, given, around))


def _spec(
    world: World, shop: Workshop, agent: Agent, this_run: Run, tree: Path, given: Path, around: Surroundings
) -> Spec:
    state = shop.agents / this_run.seat
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    entry = desk.of_agent(world, agent, this_run, given)
    env = places.environment(world, {"LEGION_STATE": str(state), **around.env})
    env |= entry.env(env.get("PATH", ""))
    readable = (given, letters.long_ones(shop, this_run.seat), *entry.readable)
    walls = places.sandbox(world, shop, writable=(tree, state, *around.writable), readable=readable)
    place = claude.Place(tree=tree, state=state, given=given, env=env, walls=walls)
    errand = replace(_errand(world, shop, agent, this_run), desk=entry.desk)
    return claude.spec(world, this_run, errand, place, shop.config.agents.timeout)


def _errand(world: World, shop: Workshop, agent: Agent, this_run: Run) -> Errand:
    with world.store.read() as tx:
        names = agents.names(tx)
        batch = mail.of_batch(tx, agent.id, this_run.prompt)
        spent = usage.of_agent(tx, agent.number).usd
        money = agents.all_means(tx, world.user.standing.top)[agent.id].money
    cut = _cut_off(world, this_run) if agent.owes else None
    folder = letters.long_ones(shop, this_run.seat)
    return Errand(
        prompt=letters.prompt(agent, names, batch, folder, cut=cut, fresh=True),
        again=letters.prompt(agent, names, batch, folder, cut=cut, fresh=False),
        rules=letters.rules(agent, names),
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
    return planning.only_reading(agent.rights.tools) if agent.only_reads else agent.rights.tools


def _cut_off(world: World, this_run: Run) -> CutOff:
    """What the turns since the last whole one left open."""
    since = _since_whole(world, this_run)
    events = [event for run in since for event in read_journal(world.data.runs / run.name)]
    return CutOff(outcome=since[-1].outcome if since else None, calls=claude.cut_off(events))


def _since_whole(world: World, this_run: Run) -> list[Run]:
    """The turns that this one goes on with, oldest first."""
    with world.store.read() as tx:
        earlier = [run for run in runs.of_seat(tx, this_run) if run.id < this_run.id]
    return list(takewhile(lambda run: run.outcome in _GOES_ON, reversed(earlier)))[::-1]


def conclude(
    world: World,
    shop: Workshop,
    claim: Claim,
    agent: Agent,
    this_run: Run,
    end: End,
) -> None:
    """Turn, mail and claim change together, and the parent hears of it in the same transaction."""
    if end.outcome is Outcome.STOPPED and (over := quota.exceeded(world, this_run)) is not None:
        end = replace(end, detail=over.reason)
    elif end.outcome is Outcome.STOPPED and (empty := pacing.stopped_for_budget(world, this_run)):
        end = replace(end, detail=empty)
    elif end.outcome is Outcome.STOPPED and (helped := judging.ended_by(world, this_run)) is not None:
        end = replace(end, detail=helped.why)
    said = _last_words(world, this_run)
    environment.release(world, this_run, end.outcome)
    claude.let_go(world, this_run)
    asking.close_all(world, this_run)
    with world.store.read() as tx:
        offered = {message.batch for message in mail.offered(tx, agent.id)} | {this_run.prompt}
    heard = heard_of(hearing.config_dir(shop, this_run.seat), agent.id, offered)
    crash.reach(Point.SERVE_BEFORE_CONCLUDE)
    with world.store.write() as tx:
        if not jobs.still_mine(tx, claim):
            return
        agent = agents.get(tx, agent.id)
        runs.end(tx, this_run.id, end.outcome, end.detail, end.saved)
        hearing.settle(tx, agent, heard)
        if agent.fired_at is None:
            _go_on_or_tell(tx, agent, this_run, end, said, begun=this_run.prompt in heard)
            if end.holding is not None and end.step is not None:
                holding.conclude(tx, agent, end.holding, end.step, end.then)
            if end.outcome is Outcome.FINISHED and leaving.leaves(tx, agent, said):
                agent = leaving.dismiss(tx, agent, by=agent.parent, subtree=False, in_a_turn=()).fired[0]
        jobs.finish(tx, claim)
    crash.reach(Point.SERVE_AFTER_CONCLUDE)
    if agent.fired_at is not None:
        shop.worktrees.discard(agent_seat(agent.number))


def _go_on_or_tell(tx: Transaction, agent: Agent, this_run: Run, end: End, said: str, *, begun: bool) -> None:
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
            _tell_parent(tx, agent, words, Post.NOTICE)
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
    _tell_parent(tx, agent, text, Post.RESULT)
    if outcome is Outcome.OUT_OF_BUDGET and agent.rights.budget is not None:
        _ask_for_money(tx, agent, this_run, agent.rights.budget)


def _ask_for_money(tx: Transaction, agent: Agent, this_run: Run, budget: float) -> None:
    """Once for each stop: nobody but the person can raise what was given at the hire."""
    questions.withdraw(tx, agent=agent.id, kind=Matter.BUDGET, why="it was asked again")
    questions.ask(
        tx,
        key=f"budget:{agent.id}:{this_run.id}",
        kind=Matter.BUDGET,
        project=agent.project,
        agent=agent.id,
        words=f"{agent.name} has spent its budget of ${budget:.2f}. Shall it get as much again?",
        facts={"task": agent.task[:_LONGEST_FACT]},
        deadline=tx.now + planning.PATIENCE,
    )


def _tell_parent(tx: Transaction, agent: Agent, text: str, kind: Post) -> None:
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


def _last_words(world: World, this_run: Run) -> str:
    """What it said at the end of each of its answers; more than one where it was told something on the way.

    A turn that was lost behind its last word has told nobody yet.
    """
    lost = [run for run in _since_whole(world, this_run) if run.outcome is Outcome.LOST]
    events = [event for run in (*lost, this_run) for event in read_journal(world.data.runs / run.name)]
    said = [str(event.facts.get("text") or "").strip() for event in events if event.kind == "result"]
    return "\n\n".join(dict.fromkeys(text for text in said if text))
