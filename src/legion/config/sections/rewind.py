"""[rewind] in the person's file: which states of an agent's work are kept from call to call. Data only."""

from __future__ import annotations

from dataclasses import dataclass, field

from legion.config.base.settings import flag, number, whole


@dataclass(frozen=True, kw_only=True)
class RewindSettings:
    on: bool = field(
        default=True,
        metadata=flag(help="Whether the tree is saved after every call of Claude Code that can change it."),
    )
    keep: int = field(
        default=200, metadata=whole(1, 10_000, help="At least this many of the latest states of a run are kept.")
    )
    disk_mb: float = field(
        default=500.0,
        metadata=number(1, 1_000_000, unit="megabytes", help="Most disk for the kept states of a run."),
    )
