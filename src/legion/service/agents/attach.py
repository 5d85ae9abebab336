"""Attaching to a standing agent: a person takes over its conversation in a terminal, and gives it back.

The request is a row, and the terminal is a turn like any other, so everything may be killed at any time.
"""

from __future__ import annotations

from dataclasses import replace

from legion.domain.agents.agent import ROOT, Agent, may
from legion.domain.errors import StateConflict
from legion.domain.runs import Run
from legion.domain.takeovers import Takeover, TakeoverStage
from legion.jobs.agent import preparation
from legion.jobs.board import Board
from legion.jobs.turn.wheel import is_wanted
from legion.runner import launch
from legion.service.agents.listing import AgentLines
from legion.service.shared.terminals import PATIENCE, STILL_WAITS, has_opened, leave, terminal_of, wait_for_terminal
from legion.store.database.transactions import ReadTransaction
from legion.store.staff import agents
from legion.store.work import runs, takeovers
from legion.wire.projects import Done
from legion.wire.terminal import AttachAgent, GiveBackAgent, OpenTerminal


def attach(context: Board, wanted: AttachAgent, patience: float = PATIENCE) -> OpenTerminal:
    """The agent's terminal, once there is one; an answer without a socket: ask again. What has ended for them or was
    given up follows the rules of a ticket's.
    """
    began = context.clock() - wanted.waited
    if not wanted.only_looks:
        _ask(context, wanted.id, began)
    return wait_for_terminal(
        context,
        lambda: _look(context, wanted, began),
        lambda: _cut(context, wanted.id),
        waited=wanted.waited,
        patience=patience,
    )


def _look(context: Board, wanted: AttachAgent, began: float) -> OpenTerminal | Run | None:
    with context.store.read() as tx:
        agent = agents.find(tx, wanted.id, by=ROOT)
        turn, wheel = _turn(tx, agent), takeovers.of_agent(tx, agent.number)
        waits = wheel is not None or not has_opened(context, runs.of_agent(tx, agent.number), began)
        wanted_turn = turn if turn is not None and is_wanted(context, tx, agent, turn) else None
    _refuse_fired(agent)
    found = None if wanted_turn is None else terminal_of(context, wanted_turn)
    if found is not None:
        message = f"{agent.name}. Ctrl-Q gives it back: it works alone again."
        return OpenTerminal(run=found.parent.name, socket=str(found), message=message, wheel=True)
    if wanted.only_looks:
        return OpenTerminal(run="", socket="", message=f"{agent.name} has no terminal now.")
    if not waits:
        raise StateConflict(
            f"The request for the conversation of {agent.name} has ended: its program ended. "
            f"`legion attach {agent.name}` asks again."
        )
    if wheel is None or wheel.stage is TakeoverStage.WITHDRAWN:
        return STILL_WAITS
    return turn if turn is not None and wheel.may_interrupt(turn.id) else None


def give_back(context: Board, wanted: GiveBackAgent) -> Done:
    """The person leaves, or gives up waiting. Nothing to do where no one holds the conversation."""
    with context.store.read() as tx:
        agent = agents.find(tx, wanted.id, by=ROOT)
        turn, wheel = _turn(tx, agent), takeovers.of_agent(tx, agent.number)
    if wheel is None:
        return Done(message=f"No person holds the conversation of {agent.name}.")
    others = None if turn is None or not wheel.opens(turn.id) else leave(context, turn)
    if others:
        return Done(message=f"Another person is still at {agent.name}: the last one gives it back.")
    _withdraw(context, agent, left=turn if others == 0 else None)
    return Done(message=f"{agent.name} works alone again.")


def _turn(tx: ReadTransaction, agent: Agent) -> Run | None:
    latest = next(iter(runs.of_agent(tx, agent.number, limit=1)), None)
    return latest if latest is not None and latest.ended_at is None else None


def _ask(context: Board, id: str, began: float) -> None:
    """Record that a person wants the conversation. An idle agent gets a turn for it, without mail."""
    with context.store.write() as tx:
        agent = agents.find(tx, id, by=ROOT)
        _refuse_fired(agent)
        turn, wheel = _turn(tx, agent), takeovers.of_agent(tx, agent.number)
        driver = preparation.profile(agent)
        if not may("attach_agent", agent, AgentLines(context, tx).facts(agent)):
            raise StateConflict(
                f"{driver.title} has no interactive form: `legion tell {agent.name}` sends it a message."
            )
        alone = None if turn is None else turn.id
        if wheel is None:
            if has_opened(context, runs.of_agent(tx, agent.number), began):
                return
            takeovers.put(tx, Takeover(agent=agent.number, owes=agent.owes, alone=alone))
            if turn is None:
                agents.hold(tx, agent, owes=True)
        elif wheel.stage is TakeoverStage.WITHDRAWN:
            takeovers.put(tx, replace(wheel, alone=alone, stage=TakeoverStage.CUT))
        tx.tell()


def _cut(context: Board, id: str) -> bool:
    with context.store.write() as tx:
        agent = agents.find(tx, id, by=ROOT)
        turn, wheel = _turn(tx, agent), takeovers.of_agent(tx, agent.number)
        if turn is None or wheel is None or not wheel.may_interrupt(turn.id):
            return False
        takeovers.put(tx, replace(wheel, stage=TakeoverStage.CUT))
        return True


def _withdraw(context: Board, agent: Agent, left: Run | None) -> None:
    """The agent does what it would have done; a turn that was interrupted or opened already ends first. `left`: the
    turn whose terminal the person left, which ends.
    """
    with context.store.write() as tx:
        turn, wheel = _turn(tx, agent), takeovers.of_agent(tx, agent.number)
        if wheel is None or (left is not None and (turn is None or turn.id != left.id)):
            return
        if turn is None:
            takeovers.end(tx, agent=agent.number)
            agents.hold(tx, agents.get(tx, agent.id), owes=wheel.owes)
        elif turn.id == wheel.alone and wheel.stage is TakeoverStage.ASKED:
            takeovers.end(tx, agent=agent.number)
        else:
            takeovers.put(tx, replace(wheel, stage=TakeoverStage.WITHDRAWN))
        tx.tell()
    if left is None and turn is not None and turn.id != wheel.alone:
        launch.interrupt(context.data.runs / turn.name)


def _refuse_fired(agent: Agent) -> None:
    if agent.fired_at is not None:
        raise StateConflict(f"{agent.name} was fired: `legion agents` lists the others.")
