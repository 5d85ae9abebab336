"""Records which messages were delivered: those whose prompt the program echoed and its transcript holds.

The echo alone is not enough: a program that is killed may have echoed more than it stored. After a turn that ended by
itself it is: a transcript that cannot be read must not start the same turn again and again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import takewhile
from pathlib import Path

from legion.domain.agents.agent import ROOT, Agent
from legion.domain.agents.mail import Delivery, Message, MessageKind
from legion.domain.checks import HookKind
from legion.domain.runs import Outcome, Run
from legion.drivers import registry
from legion.jobs import person_hooks
from legion.jobs.board import Board
from legion.jobs.trees import ProjectContext, Trees
from legion.runner.journal import JournalEvent
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.store.staff import agents, mail
from legion.store.work import runs


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


# The person's hook for a standing agent that ends its turn: it may send the agent on with a text.

_MARK = "A hook of the person does not let you end your turn yet:"
_MOST_IN_A_ROW = 3
"""How often it may send the same agent on without any other message in between."""


def continuation(context: Trees, project: ProjectContext, agent: Agent, this_run: Run) -> str | None:
    """The message with which the agent continues; None where it may idle."""
    if not person_hooks.is_set(context, HookKind.TEAMMATE_IDLE):
        return None
    with context.store.read() as tx:
        if _in_a_row(tx, agent, this_run) >= _MOST_IN_A_ROW:
            return None
    facts = {"teammate_name": agent.name, "session_id": agent.id}
    text = person_hooks.refusal(context, project.record, HookKind.TEAMMATE_IDLE, facts)
    return f"{_MARK}\n\n{text}" if text is not None else None


def _in_a_row(tx: ReadTransaction, agent: Agent, this_run: Run) -> int:
    """How many of the latest turns, this one first, were started by nothing but this hook."""
    turns = [run for run in reversed(runs.of_agent(tx, agent.number)) if run.id <= this_run.id]

    def by_hook(run: Run) -> bool:
        batch = mail.of_batch(tx, agent.id, run.prompt)
        return bool(batch) and all(message.text.startswith(_MARK) for message in batch)

    return len(list(takewhile(by_hook, turns)))
