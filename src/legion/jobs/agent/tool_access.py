"""Gives a run access to Legion: a token of its own, the tools that it sees, and a command line for its shell."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from legion.config.sections.claude import Answers
from legion.domain.agents import tools
from legion.domain.agents.agent import Agent, ExtraRight, rights_of
from legion.domain.agents.tools import Tool
from legion.domain.runs import Run
from legion.domain.tickets.ticket import Ticket
from legion.drivers.profile import ToolLink, ToolText
from legion.jobs.board import Board
from legion.jobs.context import Context
from legion.store.database.transactions import ReadTransaction
from legion.store.staff import agents, tokens
from legion.system import files

_COMMAND = "legion"
_CODE = Path(__file__).resolve().parents[3]
"""The folder that holds the package; it need not be on the interpreter's default path."""


@dataclass(frozen=True, kw_only=True)
class ToolAccess:
    """How an agent reaches Legion."""

    link: ToolLink | None = None
    variables: dict[str, str] = field(default_factory=dict)
    programs: Path | None = None
    """A folder for the front of its PATH."""
    readable: tuple[Path, ...] = ()

    def env(self, path: str) -> dict[str, str]:
        if self.programs is None:
            return self.variables
        return {**self.variables, "PATH": f"{self.programs}:{path}" if path else str(self.programs)}


def of_agent(context: Context, agent: Agent, this_run: Run, given: Path) -> ToolAccess:
    """A standing agent has tools, and the command line in its shell; both act only as itself."""
    with context.store.write() as tx:
        token = tokens.issue(tx, run=this_run.id, agent=agent.id)
        opened = rights(context, tx, agent.id)
    seen = tools.of_agent(agent, answers=context.user.claude.answers is Answers.LEADERS, opened=opened)
    return ToolAccess(
        link=_link(context, token, seen, opened),
        variables={"LEGION_URL": context.url, "LEGION_SESSION_ID": agent.id, "LEGION_TOKEN": token},
        programs=_command(given / "bin"),
        readable=_code(),
    )


def of_ticket(context: Board, ticket: Ticket, this_run: Run) -> ToolAccess:
    """The agent of a ticket has tools only where it may ask; its environment holds no token."""
    if not ticket.spec.asks:
        return ToolAccess()
    with context.store.write() as tx:
        token = tokens.issue(tx, run=this_run.id, ticket=ticket.id)
    return ToolAccess(link=_link(context, token, tools.OF_TICKETS))


def _link(context: Board, token: str, seen: tuple[Tool, ...], opened: Collection[ExtraRight] = ()) -> ToolLink:
    described = [(tool, tools.described(tool, opened)) for tool in seen]
    texts = tuple(ToolText(name=tool.value, description=one.words, schema=one.schema()) for tool, one in described)
    return ToolLink(record=str(context.data.daemon_record), token=token, server=tools.SERVER, tools=texts)


def _command(folder: Path) -> Path:
    """`legion` for the agent's shell, wherever this Legion is installed."""
    folder.mkdir(parents=True, exist_ok=True)
    python, code = shlex.quote(sys.executable), shlex.quote(str(_CODE))
    files.write_atomic(folder / _COMMAND, f'#!/bin/sh\nPYTHONPATH={code} exec {python} -m legion "$@"\n', mode=0o755)
    return folder


def _code() -> tuple[Path, ...]:
    """The folders that the command line needs: interpreter, libraries, and the package itself."""
    places = (Path(sys.prefix), Path(sys.base_prefix), _CODE)
    return tuple(dict.fromkeys(place for place in places if place not in (Path("/"), Path("/usr"), Path.home())))


# Reads which extra rights the person's current settings give to an agent.


def rights(context: Board, tx: ReadTransaction, agent: str) -> frozenset[ExtraRight]:
    """Empty for the person, who needs none."""
    opened = context.user.standing.opened
    if not any(opened.roles.values()):
        return frozenset()
    return rights_of(opened, agents.hirers(tx), agents.roles(tx), agent)
