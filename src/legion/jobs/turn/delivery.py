"""Records which messages were delivered: those whose prompt the program echoed and its transcript holds.

The echo alone is not enough: a program that is killed may have echoed more than it stored. After a turn that ended by
itself it is: a transcript that cannot be read must not start the same turn again and again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from legion.domain.agents.agent import ROOT, Agent
from legion.domain.agents.mail import Delivery, Message, MessageKind
from legion.domain.runs import Outcome
from legion.drivers import registry
from legion.jobs.board import Board
from legion.jobs.trees import ProjectContext
from legion.runner.journal import JournalEvent
from legion.store.database.transactions import Transaction
from legion.store.staff import agents, mail


class DeliveryTracker:
    """Follows the journal of a turn, and records each delivery as soon as it is certain."""

    def __init__(self, context: Board, agent: Agent, state: Path) -> None:
        self._context = context
        self._agent = agent
        self._state = state
        self._echoed: set[str] = set()

    def handle(self, event: JournalEvent) -> None:
        id = event.facts.get("id")
        if event.kind == "heard" and isinstance(id, str):
            self._echoed.add(id)
        certain = delivered(self._state, self._agent, self._echoed) if self._echoed else frozenset()
        if certain:
            self._echoed -= certain
            with self._context.store.write() as tx:
                mark_delivered(tx, self._agent, certain)


def state_folder(project: ProjectContext, seat: str) -> Path:
    """Where a seat's agent keeps its transcripts."""
    return project.agents / seat


def delivered(state: Path, agent: Agent, ids: Collection[str]) -> frozenset[str]:
    """Those of the prompts that the agent's conversation holds."""
    driver = registry.find(agent.driver or registry.DEFAULT)
    return frozenset() if driver is None else driver.delivered(state, agent.id, ids)


def in_ended_turn(events: Iterable[JournalEvent], outcome: Outcome) -> frozenset[str]:
    """The prompts that a turn worked on before it ended by itself: nothing was cut off, so they are delivered."""
    if outcome is not Outcome.FINISHED:
        return frozenset()
    return frozenset(str(event.facts.get("id")) for event in events if event.kind == "heard")


def mark_delivered(tx: Transaction, agent: Agent, batches: Collection[str]) -> None:
    for message in mail.offered(tx, agent.id):
        if message.batch in batches:
            mail.move(tx, message, Delivery.HEARD)


def settle(tx: Transaction, agent: Agent, arrived: Collection[str]) -> None:
    """The turn has ended. Undelivered mail waits for the next turn, or returns to its senders where there is none."""
    mark_delivered(tx, agent, arrived)
    open_ones = mail.offered(tx, agent.id)
    if agent.fired_at is not None:
        return_mail(tx, agent, (*open_ones, *mail.waiting(tx, agent.id)))
        return
    for message in open_ones:
        mail.move(tx, message, Delivery.WAITING)


def return_mail(tx: Transaction, agent: Agent, messages: Iterable[Message]) -> None:
    """Return undeliverable mail to the person and to senders that are not fired."""
    standing = agents.parents(tx)
    for message in messages:
        mail.move(tx, message, Delivery.RETURNED)
        if message.kind is not MessageKind.RETURNED and (message.sender == ROOT or message.sender in standing):
            text = f"{agent.name} was fired before it could read this:\n\n{message.text}"
            mail.send(
                tx,
                sender=agent.id,
                recipient=message.sender,
                kind=MessageKind.RETURNED,
                text=text,
                about=message.id,
                project=agent.project,
            )
