"""The parts of a turn that only a leader has: the handover before it, its texts, and what is recorded after it."""

from __future__ import annotations

from dataclasses import dataclass

from legion.domain.agents.agent import Agent
from legion.domain.leader import briefing
from legion.domain.leader.briefing import hands_over
from legion.domain.leader.digest import digest
from legion.domain.runs import Run
from legion.drivers import registry
from legion.drivers.profile import ConversationSize
from legion.jobs.board import Board
from legion.jobs.leader import facts
from legion.jobs.trees import ProjectContext
from legion.store import events
from legion.store.board import projects
from legion.store.database.transactions import Transaction
from legion.store.staff import agents, leaders


@dataclass(frozen=True, kw_only=True)
class LeaderTexts:
    """What a leader's turn starts with, before its mail."""

    fresh: str = ""
    resumed: str = ""
    rules: str = ""


def prepare(context: Board, project: ProjectContext, agent: Agent, this_run: Run) -> Agent:
    """Start a fresh conversation where one is due, and show it the code as it has landed by now."""
    with context.store.read() as tx:
        state = leaders.get(tx, agent.number)
        target = projects.get(tx, agent.project).target
    limit = context.user.standing.handover_tokens
    if hands_over(tokens=state.tokens, compacted=state.compacted, called=state.called, owes=agent.owes, limit=limit):
        registry.default().put_aside(project.agents / this_run.seat, agent.id)
        with context.store.write() as tx:
            leaders.change(tx, agent.number, tokens=0, compacted=0, called=0, handovers=state.handovers + 1)
    if agent.base != target:
        seat = this_run.seat
        tree = project.hub.tree_of(target)
        project.worktrees.replant(seat, target, tree, f"legion/{seat}", attempt=this_run.id)
        with context.store.write() as tx:
            agent = agents.plant(tx, agent, target)
    return agent


def texts(context: Board, agent: Agent) -> LeaderTexts:
    """Records how far the digest reaches; the end of the turn counts it where the prompt was delivered."""
    with context.store.write() as tx:
        state = leaders.get(tx, agent.number)
        last = events.last(tx)
        since = state.seen or last
        new = facts.board(context, tx, agent, since=since, fresh=False)
        everything = facts.board(context, tx, agent, since=since, fresh=True)
        known = facts.known(tx, agent, earlier=state.seen > 0)
        allowed = facts.rights(context, tx, agent)
        limit = context.user.standing.handover_tokens
        call = briefing.last_call(tokens=state.tokens, compacted=state.compacted, limit=limit)
        leaders.change(tx, agent.number, shown=last, called=int(bool(call)))
    return LeaderTexts(
        fresh=f"{briefing.briefing(known)}\n\n{digest(everything)}",
        resumed=call + digest(new),
        rules=briefing.rules(allowed),
    )


def size(project: ProjectContext, agent: Agent, seat: str) -> ConversationSize:
    return registry.default().conversation_size(project.agents / seat, agent.id)


def record(tx: Transaction, agent: Agent, *, delivered: bool, size: ConversationSize) -> None:
    """At the end of a turn."""
    state = leaders.get(tx, agent.number)
    seen = state.shown if delivered else state.seen
    called = int(state.called and delivered)
    leaders.change(tx, agent.number, seen=seen, tokens=size.tokens, compacted=int(size.compacted), called=called)
