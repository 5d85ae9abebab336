"""Finds the leader among callers, and its project."""

from __future__ import annotations

from legion.domain.agents.agent import ROOT, Agent
from legion.domain.agents.leaders import LEADER, is_leader
from legion.domain.errors import NotAllowed
from legion.domain.projects import Project
from legion.jobs.board import Board
from legion.service.projects import registry
from legion.store.board import projects
from legion.store.database.transactions import ReadTransaction
from legion.store.staff import agents


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
