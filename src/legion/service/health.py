"""How the place is in which a ticket's agent works: slot, ports, sizes, what `up` and `down` said. Read only."""

from __future__ import annotations

from pathlib import Path

from legion.domain.runs import Run
from legion.jobs import environment, quota, slots
from legion.jobs.environment import Ran
from legion.jobs.world import World
from legion.wire.tickets import CommandLine, EnvironmentLine

_MOST_FILES = 100_000
"""Counted for a page that somebody waits for."""


def environment_line(world: World, latest: Run | None, worktree: str | None) -> EnvironmentLine | None:
    """The place of the latest run; None before the first one."""
    if latest is None:
        return None
    slot = slots.held(world, latest)
    record = environment.read_record(world, latest)
    temp = slots.temp(world, latest.seat)
    tree_size = quota.measure((Path(worktree),) if worktree else (), most=_MOST_FILES)
    temp_size = quota.measure((temp,), most=_MOST_FILES)
    return EnvironmentLine(
        run=latest.id,
        slot=slot.number if slot else None,
        ports=list(slot.ports) if slot else [],
        listening=list(slots.listening(slot.ports)) if slot else [],
        temp=str(temp) if temp.exists() else None,
        temp_bytes=temp_size.bytes,
        worktree_bytes=tree_size.bytes,
        all_counted=tree_size.whole and temp_size.whole,
        limit_bytes=quota.limit(world, latest),
        up=_command_line(record.up_result),
        down=_command_line(record.down_result),
        notes=list(record.notes),
    )


def _command_line(ran: Ran | None) -> CommandLine | None:
    return None if ran is None else CommandLine(command=ran.command, ok=ran.ok, how=ran.how, tail=ran.tail)
