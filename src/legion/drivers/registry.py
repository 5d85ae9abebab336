"""The drivers by name: those with code of their own, and the described agent programs.

A new kind of driver is a folder (or module) in this package and a line here; a new program is a TOML file.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping

from legion.drivers import Driver, StartFailed
from legion.drivers.claude.profile import ClaudeProfile
from legion.drivers.command import CommandProfile
from legion.drivers.profile import Capabilities, DriverProfile
from legion.drivers.programs import catalog
from legion.drivers.programs.description import DriverKind, ProgramDescription, ProgramPart
from legion.drivers.terminal.profile import TerminalProfile
from legion.drivers.turns import profile

PROFILES: dict[str, DriverProfile] = {one.name: one for one in (CommandProfile(), TerminalProfile(), ClaudeProfile())}
"""The drivers with code of their own."""
COMMAND = CommandProfile.name
"""Runs any command line: agents that only read their briefing, and every check."""
TERMINAL = TerminalProfile.name
"""Runs any interactive program in a terminal that people attach to."""
DEFAULT = ClaudeProfile.name
"""The driver of standing agents, and of tickets where neither ticket, project nor settings name one."""

_KINDS = {kind.value: kind for kind in DriverKind}
_described: dict[str, tuple[ProgramDescription, DriverProfile]] = {}


def default() -> DriverProfile:
    return PROFILES[DEFAULT]


def profiles() -> Mapping[str, DriverProfile]:
    """All drivers. The person may add programs while the daemon runs."""
    return {**{name: _profile(one) for name, one in catalog.programs().found.items()}, **PROFILES}


def find(name: str, kind: str = "") -> DriverProfile | None:
    """The driver of this name; where its file is gone, what every program of its kind can do."""
    if name in PROFILES:
        return PROFILES[name]
    program = catalog.programs().found.get(name)
    if program is None and kind in _KINDS:
        program = ProgramDescription(
            name=name, title=name, driver=_KINDS[kind], program=ProgramPart(run=(name,), version=())
        )
    return None if program is None else _profile(program)


def _profile(program: ProgramDescription) -> DriverProfile:
    known = _described.get(program.name)
    if known is None or known[0] != program:
        known = _described[program.name] = (program, profile.DescribedProfile(program))
    return known[1]


def built_in() -> tuple[str, ...]:
    """The drivers that need no settings: their names can be chosen as they are."""
    return tuple(name for name, one in profiles().items() if not one.needs_command)


def that_can(capability: Callable[[Capabilities], bool]) -> tuple[str, ...]:
    """Drivers with this capability to advise a person to: those that come with Legion, program and all."""
    return tuple(name for name, one in PROFILES.items() if not one.needs_command and capability(one.capabilities))


def is_known(name: str, kind: str = "") -> bool:
    """Whether a runner can load it."""
    return kind in _KINDS or find(name) is not None


def load(name: str, kind: str = "") -> Driver:
    """The driver for a runner. Raises StartFailed where what it needs is not installed."""
    try:
        if kind in _KINDS:
            return profile.load(_KINDS[kind])
        return PROFILES[name].load()
    except ImportError as missing:
        raise StartFailed(f"The driver {name} cannot be used ({missing}): install Legion again.") from missing


def warm() -> None:
    """Import what every driver needs, so that processes forked from this one need not."""
    for one in PROFILES.values():
        # A run that needs the missing library reports it.
        with contextlib.suppress(ImportError):
            one.warm()
    with contextlib.suppress(ImportError):
        profile.load(DriverKind.ACP)
