"""The drivers by name. A new driver is a folder (or module) in this package and a line in `_ALL`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from legion.drivers import Driver, StartFailed
from legion.drivers.claude.profile import ClaudeProfile
from legion.drivers.command import CommandProfile
from legion.drivers.profile import Capabilities, DriverProfile

_ALL: tuple[DriverProfile, ...] = (
    CommandProfile(),
    ClaudeProfile(),
)

PROFILES: dict[str, DriverProfile] = {one.name: one for one in _ALL}
COMMAND = CommandProfile.name
"""Runs any command line: agents that only read their briefing, and every check."""
DEFAULT = ClaudeProfile.name
"""The driver of standing agents, and of tickets where neither ticket, project nor settings name one."""


def default() -> DriverProfile:
    return PROFILES[DEFAULT]


def built_in() -> tuple[str, ...]:
    """The drivers that need no settings: their names can be chosen as they are."""
    return tuple(name for name, one in PROFILES.items() if not one.needs_command)


def that_can(capability: Callable[[Capabilities], bool]) -> tuple[str, ...]:
    """The built-in drivers that have this capability."""
    return tuple(name for name in built_in() if capability(PROFILES[name].capabilities))


def load(name: str) -> Driver:
    """The driver for a runner. Raises StartFailed where what it needs is not installed."""
    try:
        return PROFILES[name].load()
    except ImportError as missing:
        raise StartFailed(f"The driver {name} cannot be used ({missing}): install Legion again.") from missing


def warm() -> None:
    """Import what every driver needs, so that processes forked from this one need not."""
    for one in PROFILES.values():
        # A run that needs the missing library reports it.
        with contextlib.suppress(ImportError):
            one.warm()
