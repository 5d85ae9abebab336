"""What a run needs to call Legion: a token of its own, the tools that it sees, and a command line for its shell."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from legion.config.claude import Answers
from legion.domain import tools
from legion.domain.agents import Agent
from legion.domain.opening import Right
from legion.domain.runs import Run
from legion.domain.tickets import Ticket
from legion.domain.tools import Tool
from legion.drivers.claude.options import Desk, ToolText
from legion.jobs import opening
from legion.jobs.world import World
from legion.store import tokens
from legion.system import files

_COMMAND = "legion"
_CODE = Path(__file__).resolve().parents[2]
"""The folder that holds the package: it need not be where the interpreter looks by itself."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """An agent's way to Legion."""

    desk: Desk | None = None
    variables: dict[str, str] = field(default_factory=dict)
    programs: Path | None = None
    """A folder for the front of its PATH."""
    readable: tuple[Path, ...] = ()

    def env(self, path: str) -> dict[str, str]:
        if self.programs is None:
            return self.variables
        return {**self.variables, "PATH": f"{self.programs}:{path}" if path else str(self.programs)}


def of_agent(world: World, agent: Agent, this_run: Run, given: Path) -> Entry:
    """A standing agent has tools, and the command line in its shell; both act as itself and as nobody else."""
    with world.store.write() as tx:
        token = tokens.issue(tx, run=this_run.id, agent=agent.id)
        opened = opening.rights(world, tx, agent.id)
    seen = tools.of_agent(agent, answers=world.user.claude.answers is Answers.LEADERS, opened=opened)
    return Entry(
        desk=_desk(world, token, seen, opened),
        variables={"LEGION_URL": world.url, "LEGION_SESSION_ID": agent.id, "LEGION_TOKEN": token},
        programs=_command(given / "bin"),
        readable=_code(),
    )


def of_ticket(world: World, ticket: Ticket, this_run: Run) -> Entry:
    """The agent of a ticket has tools only where it may ask; nothing of that is in its environment."""
    if not ticket.wish.asks:
        return Entry()
    with world.store.write() as tx:
        token = tokens.issue(tx, run=this_run.id, ticket=ticket.id)
    return Entry(desk=_desk(world, token, tools.OF_TICKETS))


def _desk(world: World, token: str, seen: tuple[Tool, ...], opened: Collection[Right] = ()) -> Desk:
    described = [(tool, tools.described(tool, opened)) for tool in seen]
    texts = tuple(ToolText(name=tool.value, description=one.words, schema=one.schema()) for tool, one in described)
    return Desk(record=str(world.data.daemon_record), token=token, server=tools.SERVER, tools=texts)


def _command(folder: Path) -> Path:
    """`legion` for the agent's shell, wherever this Legion is installed."""
    folder.mkdir(parents=True, exist_ok=True)
    python, code = shlex.quote(sys.executable), shlex.quote(str(_CODE))
    files.write_whole(folder / _COMMAND, f'#!/bin/sh\nPYTHONPATH={code} exec {python} -m legion "$@"\n', mode=0o755)
    return folder


def _code() -> tuple[Path, ...]:
    """What the command line is made of: interpreter, libraries, and the package itself."""
    places = (Path(sys.prefix), Path(sys.base_prefix), _CODE)
    return tuple(dict.fromkeys(place for place in places if place not in (Path("/"), Path("/usr"), Path.home())))
