"""Tickets that wait for a way to a model: what is still missing, and letting them go on when nothing is.

Of files only times and sizes are looked at here; nothing of a key.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from legion.config.providers import ProviderConfig, providers_file
from legion.domain.decide import JobKind
from legion.domain.errors import LegionError
from legion.domain.rules import Rule
from legion.domain.tickets import ParkReason, Ticket, Unpark
from legion.jobs import access, claude
from legion.jobs.access import Served
from legion.jobs.world import World
from legion.store import agents, tickets
from legion.store.database import ReadTransaction

_SETTLED = 6.0
"""Seconds after the last refusal; by then the gateway has forgotten that a key was not there."""


def missing(world: World) -> str:
    """What keeps Claude Code from starting, in one sentence that says what to do; empty where nothing does."""
    try:
        way = access.choose(world)
        claude.find_program(world)
        if isinstance(way, Served):
            one = access.known(world)[way.provider]
            return access.key_advice(way.provider, one) if access.key_found(world, one) is False else ""
    except LegionError as trouble:
        return trouble.message
    return ""


def go_on(world: World) -> list[int]:
    """Tell the gateway what there is now; where nothing is missing, wake every ticket that waits for a provider."""
    access.tell_gateway(world)
    if missing(world):
        return []
    with world.store.write() as tx:
        waiting = [ticket.id for ticket in _waiting(tx)]
        agents.let_go_on(tx)
    for job in [job for job in list(world.rests) if job[0] is JobKind.SERVE]:
        world.rests.pop(job, None)
    world.store.tell()
    return _wake(world, waiting)


class Watch:
    """Notices that a person mended what tickets wait for, in whatever way they did it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._began = world.clock()
        self._judged: tuple[_Signs, tuple[int, ...]] | None = None

    def look(self) -> bool:
        """Wake whoever can go on. Whether anybody waited; if so, it is worth looking again soon."""
        with self._world.store.read() as tx:
            waiting = _waiting(tx)
        if not waiting:
            self._judged = None
            return False
        if self._world.clock() - max(ticket.moved_at for ticket in waiting) < _SETTLED:
            return True
        signs = self._signs()
        this, before = (signs, tuple(ticket.id for ticket in waiting)), self._judged
        if this == before:
            return True
        self._judged = this
        # What changed before our eyes may leave no time behind: a file that was deleted, an older program.
        since = math.inf if before is not None and before[0] != signs else signs.newest
        mended = [ticket.id for ticket in waiting if ticket.moved_at < since]
        if mended and not missing(self._world):
            access.tell_gateway(self._world)
            _wake(self._world, mended)
        return True

    def _signs(self) -> _Signs:
        there = _known(self._world)
        variables = tuple(access.key_found(self._world, one) for one in there.values() if one.key_env)
        files = tuple(_file(path) for path in _places(self._world, there))
        # A new daemon has a new environment.
        began = self._began if variables else 0.0
        return _Signs(files=files, variables=variables, newest=max([began, *(file.changed for file in files)]))


@dataclass(frozen=True, kw_only=True)
class _File:
    path: str
    changed: float
    """When, whoever copied which times; 0 where nothing is there."""
    size: int


@dataclass(frozen=True, kw_only=True)
class _Signs:
    """Cheap to look at, and different after a person mended something."""

    files: tuple[_File, ...]
    variables: tuple[bool | None, ...]
    """Whether the gateway has the variables of keys."""
    newest: float


def _known(world: World) -> Mapping[str, ProviderConfig]:
    try:
        return access.known(world)
    except LegionError:
        # Its file makes no sense at the moment; when it is mended, its time changes.
        return {}


def _places(world: World, there: Mapping[str, ProviderConfig]) -> Iterator[Path]:
    yield from (Path(world.user.origin), providers_file(), access.login_file())
    yield from (Path(one.key_file).expanduser() for one in there.values() if one.key_file)
    program = shutil.which(Path(world.user.claude.program or "claude").expanduser())
    if program is not None:
        yield Path(program)


def _file(path: Path) -> _File:
    try:
        facts = path.stat()
    except OSError:
        return _File(path=str(path), changed=0.0, size=0)
    return _File(path=str(path), changed=facts.st_ctime, size=facts.st_size)


def _waiting(tx: ReadTransaction) -> list[Ticket]:
    return [
        ticket
        for ticket in tickets.live(tx)
        if ticket.parked is not None and ticket.parked.reason is ParkReason.PROVIDER
    ]


def _wake(world: World, wanted: Iterable[int]) -> list[int]:
    """Those of them that still wait."""
    with world.store.write() as tx:
        woken = [ticket.id for ticket in _waiting(tx) if ticket.id in set(wanted)]
        for ticket in woken:
            tickets.move(tx, ticket, Unpark(), rule=Rule.MENDED)
    return woken
