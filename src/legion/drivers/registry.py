"""The drivers by name. A spec names its driver; a runner looks it up here."""

from __future__ import annotations

import contextlib
import importlib
from enum import Enum

from legion.drivers import Driver, StartFailed
from legion.drivers.command import CommandDriver


class DriverName(Enum):
    COMMAND = "command"
    """Any program: agents that only read their briefing, and every check."""
    CLAUDE = "claude"
    """Claude Code, through its SDK."""


def driver(name: DriverName) -> Driver:
    """Raises StartFailed where what it needs is not installed."""
    if name is DriverName.COMMAND:
        return CommandDriver()
    # Its SDK takes a second to import and much memory, which nobody but a runner should pay.
    try:
        made: Driver = importlib.import_module("legion.drivers.claude.driver").ClaudeDriver()
    except ImportError as missing:
        raise StartFailed(f"The driver {name.value} cannot be used ({missing}): install Legion again.") from missing
    return made


def warm() -> None:
    """Import what every driver needs, so that processes forked from this one need not."""
    for name in DriverName:
        # The run that wants it says so.
        with contextlib.suppress(StartFailed):
            driver(name)
    with contextlib.suppress(ImportError):
        # Locks of the SDK load half of anyio when the first of them is made, which is long after the fork.
        importlib.import_module("anyio").run(importlib.import_module("anyio.lowlevel").checkpoint)
