"""Which messages an agent has heard: those whose prompt its program echoed and its transcript holds.

The echo alone is not enough, for a program that is killed may have said more than it wrote down.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from legion.domain.agents.agent import ROOT, Agent
from legion.domain.agents.mail import Delivery, Message, MessageKind
from legion.drivers.claude.options import heard_of
from legion.jobs.context import Context, ProjectContext
from legion.runner.journal import JournalEvent
from legion.store.database.transactions import Transaction
from legion.store.staff import agents, mail


class DeliveryTracker:
    """Listens to the journal of a turn, and writes down what was heard as soon as that is certain."""

    def __init__(self, context: Context, agent: Agent, config_dir: Path) -> None:
        self._context = context
        self._agent = agent
        self._config_dir = config_dir
        self._echoed: set[str] = set()

    def hear(self, event: JournalEvent) -> None:
        id = event.facts.get("id")
        if event.kind == "heard" and isinstance(id, str):
            self._echoed.add(id)
        certain = heard_of(self._config_dir, self._agent.id, self._echoed) if self._echoed else frozenset()
        if certain:
            self._echoed -= certain
            with self._context.store.write() as tx:
                mark_delivered(tx, self._agent, certain)


def config_dir(project_context: ProjectContext, seat: str) -> Path:
    """Where the transcripts of a seat's agent are."""
    return project_context.agents / seat / "claude"


def mark_delivered(tx: Transaction, agent: Agent, batches: Collection[str]) -> None:
    for message in mail.offered(tx, agent.id):
        if message.batch in batches:
            mail.move(tx, message, Delivery.HEARD)


def settle(tx: Transaction, agent: Agent, heard: Collection[str]) -> None:
    """The turn has ended. What its transcript lacks waits for the next one, or goes back where there is none."""
    mark_delivered(tx, agent, heard)
    open_ones = mail.offered(tx, agent.id)
    if agent.fired_at is not None:
        give_back(tx, agent, (*open_ones, *mail.waiting(tx, agent.id)))
        return
    for message in open_ones:
        mail.move(tx, message, Delivery.WAITING)


def give_back(tx: Transaction, agent: Agent, messages: Iterable[Message]) -> None:
    """Undeliverable mail returns to those of its senders who still stand."""
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
