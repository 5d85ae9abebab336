"""The drivers by name. A spec names its driver; a runner looks it up here."""

from __future__ import annotations

from enum import Enum

from legion.drivers import Driver
from legion.drivers.command import CommandDriver


class DriverName(Enum):
    COMMAND = "command"
    """Any program: agents that only read their briefing, and every check."""


def driver(name: DriverName) -> Driver:
    return _DRIVERS[name]


_DRIVERS: dict[DriverName, Driver] = {DriverName.COMMAND: CommandDriver()}
