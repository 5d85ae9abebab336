"""The conversation between the person and a leader: its messages, oldest first, and the state of the leader."""

from __future__ import annotations

import shlex

from legion.domain.agents.agent import LEADER, ROOT, Agent, is_leader
from legion.domain.agents.mail import Message
from legion.domain.errors import BadInput, NotAllowed, NotFound
from legion.domain.notes import format_note, in_order
from legion.domain.projects import Project
from legion.jobs.board import Board
from legion.jobs.leader import facts
from legion.service.agents.listing import AgentLines, message_lines
from legion.service.projects import registry
from legion.store.board import notes, projects
from legion.store.database.transactions import ReadTransaction
from legion.store.staff import agents, leaders, mail
from legion.wire.agents import Conversation, ReadConversation

_HIRE = f"legion agents hire 'Lead this project.' --role {LEADER} --name"
_MOST = 500


def conversation(context: Board, wanted: ReadConversation) -> Conversation:
    """Raises NotFound for an unknown name. Marks the leader's messages to the person as read."""
    if not 1 <= wanted.last <= _MOST:
        raise BadInput(f"`last` is 1 to {_MOST} messages.")
    project = registry.find(context, wanted.cwd)
    with context.store.read() as tx:
        agent = _chosen(tx, project, wanted.name.strip())
        unread = agent is not None and any(one.is_open for one in _to_person(tx, agent, wanted.last))
        # Names are the person's, not a project's: the leader of another project may have the usual one.
        taken = any(one.name == LEADER for one in agents.standing(tx))
    if agent is None:
        name = shlex.quote(f"{LEADER}-{project.name}") if taken else LEADER
        return Conversation(leader=None, messages=[], hint=f"{project.name} has no leader. Hire one: {_HIRE} {name}")
    if unread:
        with context.store.write() as tx:
            mail.read(tx, _to_person(tx, agent, wanted.last))
    with context.store.read() as tx:
        state, allowed = leaders.get(tx, agent.number), facts.rights(context, tx, agent)
        return Conversation(
            leader=AgentLines(context, tx).line(agent),
            messages=message_lines(tx, mail.between(tx, ROOT, agent.id, limit=wanted.last)),
            tokens=state.tokens,
            handover_tokens=context.user.standing.handover_tokens,
            handovers=state.handovers,
            approves=allowed.approves,
            answers=allowed.answers,
            notes=[format_note(one) for one in in_order(notes.for_leaders(tx, project.id))],
        )


def _chosen(tx: ReadTransaction, project: Project, name: str) -> Agent | None:
    if name:
        found = agents.find(tx, name, by=ROOT)
        if found.fired_at is not None:
            raise NotFound(f"{found.name} was fired already: see `legion agents`.")
        return found
    mine = [one for one in agents.standing(tx) if one.project == project.id and one.parent == ROOT]
    return next((one for one in mine if is_leader(one)), None)


def _to_person(tx: ReadTransaction, agent: Agent, limit: int) -> tuple[Message, ...]:
    return tuple(one for one in mail.between(tx, ROOT, agent.id, limit=limit) if one.recipient == ROOT)


def leader(tx: ReadTransaction, caller: str) -> Agent:
    """The calling agent. Raises NotAllowed where it is no leader."""
    agent = agents.get(tx, caller)
    if agent.fired_at is not None or not is_leader(agent):
        raise NotAllowed(f"Only an agent that the person hired with the role {LEADER} may do this: report it instead.")
    return agent


def own_project(context: Board, caller: str, cwd: str) -> Project:
    """The project of a folder for the person; a leader has its own, whatever folder it names."""
    if caller == ROOT:
        return registry.find(context, cwd)
    with context.store.read() as tx:
        return projects.get(tx, leader(tx, caller).project)
