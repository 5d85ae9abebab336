"""A machine: a host that dials in to the head and runs jobs for it. And the runs that were given to machines."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

PROTOCOL = 1
"""The version of what travels between head and machines. The head serves this one and the one before."""
INVITATION_SECONDS = 15 * 60.0
MOST_LOST = 3
"""A machine that has lost runs so often in a row is paused, and a person decides about it."""
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_LABEL = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}")


class MachineState(Enum):
    ACTIVE = "active"
    PAUSED = "paused"
    """It gets nothing new until a person resumes it. What it runs continues."""
    DRAINING = "draining"
    """It gets nothing new, and is meant to be removed or updated when its runs have ended."""
    REMOVED = "removed"
    """Its token opens nothing. The row stays until its last run is settled, and its name can be used again."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    id: int
    name: str
    labels: tuple[str, ...]
    slots: int
    """How many runs it has room for at once."""
    state: MachineState
    boot: str = ""
    """Changes with every start of its system: its processes of before are gone."""
    version: str = ""
    """Of Legion there."""
    protocol: int = PROTOCOL
    toolchain: str = ""
    """A digest of the programs that checks use there; checks run only where it equals the head's."""
    quiet_hours: str = ""
    """`22:00-07:00`: no new starts in these hours of the head's local time; empty: none."""
    mirrors: tuple[int, ...] = ()
    """The projects whose code it has already."""
    heard_at: float | None = None
    """By the clock of the head that answered last. For people; leases are not measured with it."""
    joined_at: float = 0.0
    removed_at: float | None = None
    disk_free_mb: int | None = None
    """Of the disk with its data, as it reported last; None: a release that does not report it."""
    disk_floor_mb: int = 0
    """With less than that, it starts nothing."""
    lost: int = 0
    """How often in a row runs were lost there. Runs that are lost together count once."""
    lost_at: float | None = None

    @property
    def is_full(self) -> bool:
        return self.disk_free_mb is not None and self.disk_free_mb < self.disk_floor_mb

    @property
    def is_unreliable(self) -> bool:
        return self.lost >= MOST_LOST


class PlacementState(Enum):
    """What has become of a run that was given to a machine."""

    PLACED = "placed"
    """It waits for its machine."""
    TAKEN = "taken"
    """The machine has it."""
    ENDED = "ended"
    """The machine's report about its end was accepted. Nothing else is."""
    LAPSED = "lapsed"
    """Its lease ended, or its machine was removed. Whatever the machine still sends is late."""


@dataclass(frozen=True, kw_only=True)
class PlacedRun:
    """One run on one machine. Run and generation are the fence: everything the machine sends has to name both."""

    run: int
    name: str
    project: int
    generation: int
    machine: int
    state: PlacementState
    placed_at: float
    taken_at: float | None = None
    """When its machine took it; None: no program of it was ever started."""
    taken_by: str = ""
    """The worker process that took it. Another one gets it only if it names the run itself."""
    beats: int = 0
    """Grows with every beat that names the run: the lease of a run is renewed by those and no others."""
    ended_at: float | None = None
    why: str = ""
    """Why it lapsed."""

    @property
    def taken(self) -> bool:
        return self.taken_at is not None

    @property
    def open(self) -> bool:
        return self.state in (PlacementState.PLACED, PlacementState.TAKEN)


class CommandKind(Enum):
    """What the head asks the runner of a run on a machine; the runner's control socket has the same requests."""

    STOP = "stop"
    INTERRUPT = "interrupt"
    TELL = "tell"
    PERMIT = "permit"
    UPDATE = "update"
    """To the machine itself, without a run: start the worker again, as the release that is installed there now."""


@dataclass(frozen=True, kw_only=True)
class RunCommand:
    """A request to a runner on a machine. It is sent until the machine acknowledges it."""

    id: int
    run: str
    kind: CommandKind
    facts: dict[str, object]


class ProtocolFit(Enum):
    SERVED = "served"
    OLD = "old"
    """The machine has to be updated."""
    NEW = "new"
    """The head has to be updated."""


def protocol_fit(protocol: int, own: int = PROTOCOL) -> ProtocolFit:
    if protocol > own + 1:
        return ProtocolFit.NEW
    return ProtocolFit.SERVED if protocol >= own - 1 else ProtocolFit.OLD


def name_fault(name: str) -> str:
    """Why a machine cannot have this name; empty where it can."""
    return "" if _NAME.fullmatch(name) else "must be at most 40 lower-case letters, digits and `-`"


def label_fault(label: str) -> str:
    return "" if _LABEL.fullmatch(label) else "must be at most 40 lower-case letters, digits, `.`, `_` and `-`"


def may_grant(machine: Machine, *, free: int, held: int, queued: int) -> bool:
    """`free`: runs that the machine asks for. `held`: its slots that are taken. `queued`: runs placed there earlier
    that it has not taken yet, which come first.
    """
    return machine.state is MachineState.ACTIVE and free > 0 and queued == 0 and held < machine.slots
