"""All that a job works with: board and repositories, and what starts programs here and on other machines."""

from __future__ import annotations

from dataclasses import dataclass, field

from legion.jobs.check_slots import CheckSlots
from legion.jobs.machines.part import MachinePart
from legion.jobs.start_limit import StartLimit
from legion.jobs.trees import Trees
from legion.runner.launch import Launcher


@dataclass(frozen=True, kw_only=True)
class Context(Trees):
    """A function takes the smallest of the three that it can work with."""

    launcher: Launcher
    url: str
    """Where agents reach the daemon."""
    check_slots: CheckSlots = field(default_factory=CheckSlots)
    start_limit: StartLimit = field(default_factory=StartLimit)
    machines: MachinePart = field(default_factory=MachinePart)
