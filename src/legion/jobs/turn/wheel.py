"""The turn in which a person holds the conversation of a standing agent, and the turns before and after it."""

from __future__ import annotations

from dataclasses import replace

from legion.domain.agents.agent import Agent
from legion.domain.runs import Outcome, Run
from legion.domain.takeovers import Takeover, TakeoverMode, TakeoverStage
from legion.jobs.board import Board
from legion.jobs.supervise.wait import was_wheel
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.store.staff import agents
from legion.store.work import takeovers


def attendance(tx: ReadTransaction, agent: Agent, this_run: Run) -> Takeover | None:
    """How this turn opens: in a terminal where a person wants the conversation; None: alone."""
    wanted = takeovers.of_agent(tx, agent.number)
    return None if wanted is None or not wanted.opens(this_run.id) else Takeover(ticket=0, mode=TakeoverMode.WHEEL)


def is_wanted(context: Board, tx: ReadTransaction, agent: Agent, this_run: Run) -> bool:
    """False for a turn that opens for a person who gave up meanwhile."""
    return not was_wheel(context, this_run) or attendance(tx, agent, this_run) is not None


def settle(context: Board, tx: Transaction, agent: Agent, this_run: Run, outcome: Outcome) -> bool:
    """In the transaction that ends the turn: True where a person decides what follows, so that nothing is reported."""
    wanted = takeovers.of_agent(tx, agent.number)
    withdrawn = wanted is not None and wanted.stage is TakeoverStage.WITHDRAWN
    if withdrawn:
        takeovers.end(tx, agent=agent.number)
    if was_wheel(context, this_run):
        if wanted is not None and wanted.opens(this_run.id) and outcome is not Outcome.LOST:
            takeovers.end(tx, agent=agent.number)
        lost = outcome is Outcome.LOST and not withdrawn
        agents.hold(tx, agent, owes=wanted is None or wanted.owes or lost)
        return True
    if wanted is not None and outcome is Outcome.INTERRUPTED:
        if not withdrawn:
            takeovers.put(tx, replace(wanted, owes=True))
        agents.hold(tx, agent, owes=True)
        return True
    return False


def call_again(tx: Transaction, agent: Agent) -> None:
    """A turn ended by itself while a person wanted the conversation: the next one opens for them."""
    wanted = takeovers.of_agent(tx, agent.number)
    if wanted is not None and agent.fired_at is None:
        takeovers.put(tx, replace(wanted, owes=agent.owes))
        agents.hold(tx, agent, owes=True)
