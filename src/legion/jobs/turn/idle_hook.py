"""The person's hook for a standing agent that ends its turn: it may send the agent on with a text."""

from __future__ import annotations

from itertools import takewhile

from legion.domain.agents.agent import Agent
from legion.domain.hooks import HookKind
from legion.domain.runs import Run
from legion.jobs import person_hooks
from legion.jobs.trees import ProjectContext, Trees
from legion.store.database.transactions import ReadTransaction
from legion.store.staff import mail
from legion.store.work import runs

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
