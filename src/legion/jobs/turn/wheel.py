"""The turn in which a person holds the conversation of a standing agent, and the turns before and after it."""

from __future__ import annotations

from legion.domain.agents.agent import Agent
from legion.domain.runs import Outcome, Run
from legion.domain.tickets.attendance import Attendance, AttendMode
from legion.jobs.context import Context
from legion.jobs.supervise.wheel import was_wheel
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.store.staff import agent_wheels, agents


def attendance(tx: ReadTransaction, agent: Agent) -> Attendance | None:
    """How the next turn opens: in a terminal where a person wants the conversation; None: alone."""
    wanted = agent_wheels.of_agent(tx, agent.number)
    return None if wanted is None else Attendance(ticket=0, mode=AttendMode.WHEEL)


def settle(context: Context, tx: Transaction, agent: Agent, this_run: Run, outcome: Outcome) -> bool:
    """In the transaction that ends the turn: True where a person decides what follows, so that nothing is reported."""
    wanted = agent_wheels.of_agent(tx, agent.number)
    if was_wheel(context, this_run):
        if wanted is not None and outcome is not Outcome.LOST:
            agent_wheels.end(tx, agent.number)
        agents.hold(tx, agent, owes=wanted is None or wanted.owes or outcome is Outcome.LOST)
        return True
    if wanted is not None and outcome is Outcome.INTERRUPTED:
        agent_wheels.put(tx, agent.number, owes=True)
        agents.hold(tx, agent, owes=True)
        return True
    return False


def call_again(tx: Transaction, agent: Agent) -> None:
    """A turn ended by itself while a person wanted the conversation: the next one opens for them."""
    if agent_wheels.of_agent(tx, agent.number) is not None and agent.fired_at is None:
        agent_wheels.put(tx, agent.number, owes=agent.owes)
        agents.hold(tx, agent, owes=True)
