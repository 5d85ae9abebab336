"""Checks the program that an agent is hired with: a driver that keeps a conversation, and keeps to what was agreed."""

from __future__ import annotations

from legion.domain.agents.agent import ROOT, Rights
from legion.domain.agents.extra_rights import ExtraRight, plain
from legion.domain.agents.leaders import LEADER
from legion.domain.errors import BadInput, NotAllowed
from legion.drivers import registry
from legion.jobs.agent import model_run, preparation, tool_access
from legion.jobs.board import Board
from legion.store.database.transactions import ReadTransaction
from legion.store.staff import agents
from legion.wire.agents import HireAgent

_CLAUDE = f"use --driver {registry.DEFAULT}, or leave it out"


def of_hire(context: Board, tx: ReadTransaction, caller: str, wanted: HireAgent, rights: Rights) -> tuple[str, str]:
    """Driver and model as the agent's row holds them; an empty driver is the default one.

    An agent gives its own program on. Raises BadInput, NotAllowed, NoModelAccess.
    """
    name, model = wanted.driver.strip() or registry.DEFAULT, wanted.model
    if caller != ROOT:
        hirer = agents.get(tx, caller)
        own, _ = hirer.program("", "", default=registry.DEFAULT)
        name, model = hirer.program(wanted.driver.strip(), wanted.model, default=registry.DEFAULT)
        if name != own and ExtraRight.DRIVER not in tool_access.rights(context, tx, caller):
            raise NotAllowed("Only the person chooses another program for an agent: leave out --driver.")
    return ("" if name == registry.DEFAULT else _checked(context, caller, name, wanted, rights)), model


def _checked(context: Board, caller: str, name: str, wanted: HireAgent, rights: Rights) -> str:
    known = registry.PROFILES[registry.COMMAND] if name in context.user.drivers else registry.find(name)
    if known is None:
        raise BadInput(f"There is no driver {name[:60]!r}: `legion driver list` names them.")
    if missing := preparation.missing_ability(known.capabilities):
        raise BadInput(f"{known.title} cannot be a standing agent, since {missing}: {_CLAUDE}.")
    if plain(wanted.role) == LEADER and caller == ROOT:
        raise BadInput(f"A leader needs the driver {registry.DEFAULT}: leave out --driver.")
    if (rights.tools is not None or wanted.plan or wanted.delegate) and not known.capabilities.reads_only:
        limits = "--tools, --plan and --delegate"
        raise BadInput(f"{known.title} cannot be limited to some of its tools, as {limits} demand: {_CLAUDE}.")
    model_run.find_program(context, known)
    return name
