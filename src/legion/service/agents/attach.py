"""Attaching to a standing agent: a person takes over its conversation in a terminal, and gives it back.

The request is a row, and the terminal is a turn like any other, so everything may be killed at any time.
"""

from __future__ import annotations

from legion.domain.agents.agent import Agent
from legion.domain.agents.wheel import AgentWheel
from legion.domain.errors import StateConflict
from legion.domain.runs import Run
from legion.jobs.agent import standing_program
from legion.jobs.context import Context
from legion.runner import launch
from legion.service.shared.terminals import TerminalLook, terminal_of, wait_for_terminal
from legion.store.database.transactions import ReadTransaction
from legion.store.staff import agent_wheels, agents
from legion.store.work import runs
from legion.wire.projects import Done
from legion.wire.terminal import AttachAgent, GiveBackAgent, OpenTerminal


def attach(context: Context, wanted: AttachAgent) -> OpenTerminal:
    """The agent's terminal, once there is one; an answer without a socket: ask again."""
    return wait_for_terminal(context, lambda: _look(context, wanted), waited=wanted.waited)


def _look(context: Context, wanted: AttachAgent) -> TerminalLook:
    with context.store.read() as tx:
        agent = agents.find(tx, wanted.id)
        turn, wheel = _turn(tx, agent), agent_wheels.of_agent(tx, agent.number)
    if agent.fired_at is not None:
        raise StateConflict(f"{agent.name} was fired: `legion agents` lists the others.")
    found = None if turn is None else terminal_of(context, turn)
    if found is not None:
        message = f"{agent.name}. Ctrl-Q gives it back: it works alone again."
        return TerminalLook(opened=OpenTerminal(run=found.parent.name, socket=str(found), message=message, wheel=True))
    if wanted.only_looks:
        return TerminalLook(opened=OpenTerminal(run="", socket="", message=f"{agent.name} has no terminal now."))
    if wheel is None:
        _take(context, agent, turn)
        return TerminalLook()
    return TerminalLook(interrupts=turn)


def give_back(context: Context, wanted: GiveBackAgent) -> Done:
    """The person leaves. Nothing to do where no one holds the conversation."""
    with context.store.read() as tx:
        agent = agents.find(tx, wanted.id)
        turn, wheel = _turn(tx, agent), agent_wheels.of_agent(tx, agent.number)
    if wheel is None:
        return Done(message=f"No person holds the conversation of {agent.name}.")
    opened = turn is not None and terminal_of(context, turn) is not None
    # A runner that was just killed takes no request: then the request ends, or the conversation would open again.
    if turn is None or not opened or not launch.interrupt(context.data.runs / turn.name):
        _let_go(context, agent, wheel, turn)
    return Done(message=f"{agent.name} works alone again.")


def _turn(tx: ReadTransaction, agent: Agent) -> Run | None:
    latest = next(iter(runs.of_agent(tx, agent.number, limit=1)), None)
    return latest if latest is not None and latest.ended_at is None else None


def _take(context: Context, agent: Agent, turn: Run | None) -> None:
    """Record that a person wants the conversation. An idle agent gets a turn for it, without mail."""
    driver = standing_program.profile(agent)
    if not driver.capabilities.interactive:
        raise StateConflict(f"{driver.title} has no interactive form: `legion tell {agent.name}` sends it a message.")
    with context.store.write() as tx:
        if agent_wheels.of_agent(tx, agent.number) is None:
            agent_wheels.put(tx, agent.number, owes=agent.owes)
            if turn is None:
                agents.hold(tx, agent, owes=True)
        tx.tell()


def _let_go(context: Context, agent: Agent, wheel: AgentWheel, turn: Run | None) -> None:
    """Before its terminal opened: the agent does what it would have done."""
    with context.store.write() as tx:
        agent_wheels.end(tx, agent.number)
        if turn is None:
            agents.hold(tx, agents.get(tx, agent.id), owes=wheel.owes)
        tx.tell()
