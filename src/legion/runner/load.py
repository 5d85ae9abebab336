"""Processor time and bytes used by the processes of live runs, from one read of the process table.

Only where there is /proc. A value that cannot be read makes a load unknown, never small.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from legion.domain.watchdog.activity import NO_PROCESSES, ProcessLoad
from legion.runner import tree
from legion.runner.journal import JournalEvent, JournalKind
from legion.runner.tree import Process

_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, kw_only=True)
class RootProcesses:
    """The processes at the top of a run, as its journal names them."""

    runner: int
    program: int
    """Inside a sandbox the first process of its pid namespace, whose first child is the program."""
    since: int
    """When that process started, in kernel ticks."""


Table = Mapping[int, Process]


def root_of(events: Iterable[JournalEvent]) -> RootProcesses | None:
    """From all entries of a journal, first to last. None before the program has started, or without a process table."""
    runner = 0
    for event in events:
        pid, since = event.facts.get("pid"), event.facts.get("since")
        if event.kind == JournalKind.OPENED.value:
            runner = int(str(event.facts.get("runner") or 0))
        elif event.kind == JournalKind.STARTED.value and isinstance(pid, int) and isinstance(since, int):
            return RootProcesses(runner=runner, program=pid, since=since) if runner else None
    return None


def table() -> Table | None:
    """All processes; None without a process table."""
    found = {one.pid: one for one in tree.everyone()}
    return found or None


def lives(root: RootProcesses, processes: Table) -> bool:
    first = processes.get(root.program)
    return first is not None and first.since == root.since


def load(root: RootProcesses, processes: Table, *, walled: bool, tools_only: bool) -> ProcessLoad | None:
    """The load of all processes below the runner except the sandbox, and except the program itself if it talks; None:
    unknown.
    """
    below: dict[int, list[Process]] = {}
    for one in processes.values():
        below.setdefault(one.parent, []).append(one)
    apart = set(_frame(root, below, walled=walled, tools_only=tools_only))
    mine = [one for one in _descendants(root.runner, below) if one.pid not in apart]
    if not mine:
        return NO_PROCESSES
    moved = [_bytes(one.pid) for one in mine]
    if any(one is None for one in moved):
        return None
    names = ",".join(sorted(f"{one.pid}.{one.since}" for one in mine))
    return ProcessLoad(
        cpu=sum(one.ticks for one in mine) / _TICKS,
        bytes=sum(one or 0 for one in moved),
        processes=hashlib.sha256(names.encode()).hexdigest()[:16],
        count=len(mine),
    )


def cpu_below(pid: int) -> float | None:
    """Seconds that the living descendants of a process have used; None without a process table."""
    processes = table()
    if processes is None:
        return None
    below: dict[int, list[Process]] = {}
    for one in processes.values():
        below.setdefault(one.parent, []).append(one)
    return sum(one.ticks for one in _descendants(pid, below)) / _TICKS


def _frame(root: RootProcesses, below: Mapping[int, list[Process]], *, walled: bool, tools_only: bool) -> Iterator[int]:
    """The processes that exist before any tool runs."""
    if walled:
        # The sandbox outside and the first process inside.
        yield root.program
        yield from (one.pid for one in below.get(root.runner, []) if root.program in _pids(below.get(one.pid, [])))
    if tools_only:
        inside = below.get(root.program, [])
        yield min(inside, key=lambda one: (one.since, one.pid)).pid if walled and inside else root.program


def _pids(processes: Iterable[Process]) -> set[int]:
    return {one.pid for one in processes}


def _descendants(pid: int, below: Mapping[int, list[Process]]) -> Iterator[Process]:
    for one in below.get(pid, []):
        yield one
        yield from _descendants(one.pid, below)


def _bytes(pid: int) -> int | None:
    """None where that may not be read; 0 for a process that has just ended."""
    try:
        lines = (_PROC / str(pid) / "io").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    except OSError:
        return None
    facts = dict(line.split(": ") for line in lines)
    return int(facts["rchar"]) + int(facts["wchar"])
