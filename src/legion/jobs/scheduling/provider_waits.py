"""Wakes tickets that wait for a provider, as soon as nothing is missing any longer.

Only times and sizes of files are read here, never a key.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from legion.config.files.providers import ProviderConfig, providers_file
from legion.domain.errors import LegionError
from legion.domain.rules import Rule
from legion.domain.scheduling.decide import JobKind
from legion.domain.tickets.ticket import ParkReason, Ticket, Unpark
from legion.jobs.agent import model_access, model_run
from legion.jobs.agent.model_access import GatewayAccess
from legion.jobs.board import Board
from legion.jobs.trees import Trees
from legion.store.board import tickets
from legion.store.database.transactions import ReadTransaction
from legion.store.staff import agents

_SETTLED = 6.0
"""Seconds after the last refusal; by then the gateway no longer remembers that a key was missing."""


def missing(context: Trees) -> str:
    """What keeps Claude Code from starting, in one sentence that says what to do; empty where nothing does."""
    try:
        way = model_access.choose(context)
        model_run.find_program(context)
        if isinstance(way, GatewayAccess):
            one = model_access.known(context)[way.provider]
            return model_access.key_advice(way.provider, one) if model_access.key_found(context, one) is False else ""
    except LegionError as trouble:
        return trouble.message
    return ""


def wake_waiting(context: Trees) -> list[int]:
    """Write the providers and routes for the gateway; if nothing is missing, wake every ticket that waits for one."""
    model_access.write_gateway_files(context)
    if missing(context):
        return []
    with context.store.write() as tx:
        waiting = [ticket.id for ticket in _waiting(tx)]
        agents.let_go_on(tx)
    backoffs = context.live.scheduler.backoffs
    backoffs.remove(job for job in backoffs.current if job[0] is JobKind.SERVE)
    context.store.tell()
    return _wake(context, waiting)


class ProviderWatch:
    """Notices that a person fixed what tickets wait for, in whatever way they did it."""

    def __init__(self, context: Trees) -> None:
        self._context = context
        self._began = context.clock()
        self._judged: tuple[_Fingerprint, tuple[int, ...]] | None = None

    def check(self) -> bool:
        """Wake the tickets that can resume. True where any waited: then check again soon."""
        with self._context.store.read() as tx:
            waiting = _waiting(tx)
        if not waiting:
            self._judged = None
            return False
        if self._context.clock() - max(ticket.moved_at for ticket in waiting) < _SETTLED:
            return True
        seen = self._fingerprint()
        this, before = (seen, tuple(ticket.id for ticket in waiting)), self._judged
        if this == before:
            return True
        self._judged = this
        # A change seen between two checks may have no newer time: a deleted file, an older program.
        since = math.inf if before is not None and before[0] != seen else seen.newest
        fixed = [ticket.id for ticket in waiting if ticket.moved_at < since]
        if fixed and not missing(self._context):
            model_access.write_gateway_files(self._context)
            _wake(self._context, fixed)
        return True

    def _fingerprint(self) -> _Fingerprint:
        there = _known(self._context)
        variables = tuple(model_access.key_found(self._context, one) for one in there.values() if one.key_env)
        files = tuple(_file(path) for path in _places(self._context, there))
        # A new daemon has a new environment.
        began = self._began if variables else 0.0
        return _Fingerprint(files=files, variables=variables, newest=max([began, *(file.changed for file in files)]))


@dataclass(frozen=True, kw_only=True)
class _File:
    path: str
    changed: float
    """The time of its inode, which copying does not preserve; 0 for a missing file."""
    size: int


@dataclass(frozen=True, kw_only=True)
class _Fingerprint:
    """Cheap to read, and different after a person fixed something."""

    files: tuple[_File, ...]
    variables: tuple[bool | None, ...]
    """Whether the gateway has the variables of keys."""
    newest: float


def _known(context: Board) -> Mapping[str, ProviderConfig]:
    try:
        return model_access.known(context)
    except LegionError:
        # The file cannot be parsed; when it is fixed, its time changes.
        return {}


def _places(context: Board, there: Mapping[str, ProviderConfig]) -> Iterator[Path]:
    yield from (Path(context.user.origin), providers_file(), model_access.login_file())
    yield from (Path(one.key_file).expanduser() for one in there.values() if one.key_file)
    program = shutil.which(Path(context.user.claude.program or "claude").expanduser())
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


def _wake(context: Board, wanted: Iterable[int]) -> list[int]:
    """Wake those of them that still wait, and return them."""
    with context.store.write() as tx:
        woken = [ticket.id for ticket in _waiting(tx) if ticket.id in set(wanted)]
        for ticket in woken:
            tickets.move(tx, ticket, Unpark(), rule=Rule.FIXED)
    return woken
