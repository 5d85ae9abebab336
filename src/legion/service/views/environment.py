"""The environment of a ticket's latest run: slot, ports, sizes, results of `up` and `down`. Read only."""

from __future__ import annotations

from pathlib import Path

from legion.domain.runs import Run
from legion.jobs.context import Context
from legion.jobs.workspace import environment, quota, slots
from legion.jobs.workspace.environment import HookRun
from legion.service.shared.shapes import shaped
from legion.wire.page_parts import CommandLine, EnvironmentLine

_MOST_FILES = 100_000
"""More are not counted, because a person waits for the page."""


def environment_line(context: Context, latest: Run | None, worktree: str | None) -> EnvironmentLine | None:
    """None before the first run."""
    if latest is None:
        return None
    slot = slots.held(context, latest)
    record = environment.read_record(context, latest)
    temp = slots.temp(context, latest.seat)
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
        limit_bytes=quota.limit(context, latest),
        up=_command_line(record.up_result),
        down=_command_line(record.down_result),
        notes=list(record.notes),
    )


def _command_line(ran: HookRun | None) -> CommandLine | None:
    return None if ran is None else shaped(CommandLine, ran)
