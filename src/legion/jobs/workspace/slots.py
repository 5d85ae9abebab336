"""Slots: a number, a block of ports and a temp folder that only one run of this daemon has.

A slot is a file that names its run, so it outlives the daemon as the run does. It is free as soon as that run has
ended, also if no process removed the file.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import os
import re
import socket
import uuid
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from legion.domain.errors import LegionError
from legion.domain.plans.plan import PlanState
from legion.domain.runs import Outcome, Run, seated
from legion.jobs.board import Board
from legion.runner.journal import JournalKind, read_journal
from legion.store.board import goals, tickets
from legion.store.staff import agents
from legion.store.work import runs
from legion.system import files, trees

_HIGHEST = 65535
_LISTENS = "0A"
_SLOT = re.compile(r"[0-9]+\.json")


class NoPorts(LegionError):
    """The job backs off and tries again: ports become free when runs end."""


@dataclass(frozen=True, kw_only=True)
class Slot:
    number: int
    run: str
    first: int
    """The first of its ports; 0 if it has none."""
    count: int

    @property
    def ports(self) -> range:
        return range(self.first, self.first + self.count)


def claim(context: Board, run: Run, *, ports: int) -> Slot:
    """The slot of this run, which it may have already. Makes its temp folder."""
    with _alone(context):
        temp(context, run.seat).mkdir(parents=True, exist_ok=True, mode=0o700)
        taken = _swept(context)
        for slot in taken:
            if slot.run == run.name:
                return slot
        numbers = {slot.number for slot in taken}
        number = next(number for number in range(len(taken) + 1) if number not in numbers)
        block = _free_block(context.user.environment.port_base, ports, taken) if ports else range(0)
        slot = Slot(number=number, run=run.name, first=block.start, count=len(block))
        facts = {"run": slot.run, "first": slot.first, "count": slot.count}
        # The run that a slot belongs to ends with a power cut.
        files.write_atomic(_file(context, number), json.dumps(facts), durable=False)
        return slot


def held(context: Board, run: Run) -> Slot | None:
    """The slot that the run has now."""
    return next((slot for slot in _all(context) if slot.run == run.name), None)


def release(context: Board, run: Run, outcome: Outcome) -> None:
    """Release the slot of an ended run. The temp folder of a lost run is kept for the next start of the attempt."""
    with _alone(context):
        for slot in _all(context):
            if slot.run == run.name:
                _file(context, slot.number).unlink(missing_ok=True)
        if outcome is not Outcome.LOST:
            _remove(temp(context, run.seat))
    _empty(context)


def sweep(context: Board) -> None:
    """Release the slots of ended runs, and remove temp folders that no attempt will use again."""
    with _alone(context):
        _swept(context)
        places = [*_temps(context).glob("ticket-*"), *_temps(context).glob("agent-*")]
        for place in places:
            if not _will_resume(context, place.name):
                _remove(place)
    _empty(context)


def temp(context: Board, seat: str) -> Path:
    return _temps(context) / seat


def listening(context: Board, ports: Collection[int], run: Run) -> tuple[int, ...]:
    """Those of the ports that a process of the run listens on, in whichever network it is. Read from the kernel, since
    a connection would disturb a server.
    """
    found: set[int] = set()
    started = read_journal(context.data.runs / run.name, last=1, kinds=(JournalKind.STARTED.value,))
    process = started[-1].facts["pid"] if started else "self"
    for table in (Path(f"/proc/{process}/net/tcp"), Path(f"/proc/{process}/net/tcp6")):
        with contextlib.suppress(OSError):
            for line in table.read_text().splitlines()[1:]:
                _, local, _, state, *_ = line.split()
                if state == _LISTENS:
                    found.add(int(local.rpartition(":")[2], 16))
    return tuple(port for port in ports if port in found)


@contextlib.contextmanager
def _alone(context: Board) -> Iterator[None]:
    folder = context.data.root / "slots"
    folder.mkdir(exist_ok=True, mode=0o700)
    with files.waiting_lock(folder / "lock"):
        yield


def _file(context: Board, number: int) -> Path:
    return context.data.root / "slots" / f"{number}.json"


def _temps(context: Board) -> Path:
    return context.data.root / "tmp"


def _all(context: Board) -> list[Slot]:
    slots = []
    # There is no folder before the first run.
    with contextlib.suppress(FileNotFoundError), os.scandir(context.data.root / "slots") as entries:
        for entry in entries:
            if _SLOT.fullmatch(entry.name):
                # A file that a power cut emptied belongs to a run that ended with it.
                with contextlib.suppress(FileNotFoundError, ValueError, KeyError):
                    facts = entry.stat()
                    slots.append(_read(entry.path, facts.st_ino, facts.st_mtime_ns))
    return slots


@functools.lru_cache(maxsize=200)
def _read(path: str, _inode: int, _written_at: int) -> Slot:
    """Read once: a slot that is given to another run is another file."""
    facts = json.loads(Path(path).read_bytes())
    return Slot(number=int(Path(path).stem), run=facts["run"], first=facts["first"], count=facts["count"])


def _swept(context: Board) -> list[Slot]:
    """The slots whose runs have not ended. A run is known to the store before it has a slot."""
    with context.store.read() as tx:
        active = {run.name for run in runs.active(tx)}
    living = []
    for slot in _all(context):
        if slot.run in active:
            living.append(slot)
        else:
            _file(context, slot.number).unlink(missing_ok=True)
    return living


def _free_block(base: int, count: int, taken: list[Slot]) -> range:
    """The lowest block that no other run has and on which no process listens now."""
    ours = {port for slot in taken for port in slot.ports}
    for first in range(base, _HIGHEST + 2 - count, count):
        block = range(first, first + count)
        if ours.isdisjoint(block) and all(_is_free(port) for port in block):
            return block
    raise NoPorts(
        f"No {count} ports in a row are free from {base} on: lower `environment.ports` in legion.toml "
        f"or `environment.port_base` in your settings."
    )


def _is_free(port: int) -> bool:
    """On all addresses, IPv6 too if the system has it."""
    for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
        try:
            asked = socket.socket(family, socket.SOCK_STREAM)
        except OSError:
            continue
        with asked:
            # A connection that has just ended does not make a port busy.
            asked.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                if family is socket.AF_INET6:
                    asked.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                asked.bind((address, port))
            except OSError as refused:
                if refused.errno != errno.EADDRNOTAVAIL:
                    return False
    return True


def _will_resume(context: Board, seat: str) -> bool:
    found = seated(seat)
    if found is None:
        return False
    kind, number, role = found
    with context.store.read() as tx:
        if kind == "plan":
            latest = next(reversed(runs.of_plan(tx, number)), None)
        elif kind == "agent":
            latest = next(iter(runs.of_agent(tx, number, limit=1)), None)
        else:
            latest = runs.latest(tx, number, role)
        if latest is None or latest.ended_at is None:
            return latest is not None
        if latest.outcome is not Outcome.LOST:
            return False
        if latest.plan is not None:
            return goals.get(tx, latest.plan).state is PlanState.PLANNING
        if latest.ticket is None:
            return agents.numbered(tx, number).fired_at is None
        return not tickets.get(tx, latest.ticket).ended


def _remove(place: Path) -> None:
    """Rename it at once; deleting its content may take a while."""
    with contextlib.suppress(FileNotFoundError):
        place.rename(place.with_name(f".gone-{uuid.uuid4().hex}"))


def _empty(context: Board) -> None:
    for gone in _temps(context).glob(".gone-*"):
        trees.remove(gone)
