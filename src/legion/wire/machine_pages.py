"""Shapes of what people ask about machines: the list of all of them, and the log of one."""

from __future__ import annotations

from dataclasses import field

from legion.wire.lazy import dataclass


@dataclass(kw_only=True)
class MachineRunLine:
    """A run that was given to a machine."""

    run: str
    ticket: int | None
    state: str
    """placed, taken, ended or lapsed."""
    placed_at: float
    ended_at: float | None
    why: str
    """Why it lapsed; empty where it did not."""


@dataclass(kw_only=True)
class MachineLine:
    """The head or a machine."""

    name: str
    head: bool
    """Whether it is the host that this Legion runs on."""
    state: str
    """open, paused, draining, quiet, silent, outdated or disk full; only an open one starts new runs."""
    labels: list[str]
    slots: int
    runs: int
    """How many of its slots are taken."""
    version: str
    heard_at: float | None
    """When it was heard last; null for the head."""
    joined_at: float | None
    quiet_hours: str
    tools: str
    """The fingerprint of its toolchain: a digest of its system, compilers and tools. The head's is empty without
    machines.
    """
    disk_free_mb: int | None = None
    """Of the disk with its data, as it was heard last."""
    advice: str
    """What is wrong, and what fixes it; empty where nothing is."""


@dataclass(kw_only=True)
class MachineList:
    schema: str = "legion.machines/1"
    machines: list[MachineLine]
    """The head first, then in the order in which they joined."""
    reachable: str
    """The address that machines dial; empty: none is served."""
    also: list[str] = field(default_factory=list)
    """Addresses of processes that serve machines for the head: `legion serve --machines`."""


@dataclass(kw_only=True)
class MachineLog:
    schema: str = "legion.machinelog/1"
    machine: MachineLine
    runs: list[MachineRunLine]
    """The newest last."""


@dataclass(kw_only=True)
class RemoveMachine:
    yes: bool = False
    """Also while it has runs: they start again elsewhere, and what was not saved of them stays there."""
