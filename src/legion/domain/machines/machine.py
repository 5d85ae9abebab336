"""A machine: a host that dials in to the head and runs jobs for it. And the runs that were given to machines."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from enum import Enum

from legion.domain.errors import BadInput
from legion.domain.machines.placement import PlaceState

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


# The condition of a machine: whether it takes new work now, and the reason in one sentence where it does not.

_BY_PERSON = {MachineState.PAUSED: PlaceState.PAUSED, MachineState.DRAINING: PlaceState.DRAINING}


_ALL = frozenset(MachineState) - {MachineState.REMOVED}
OFFERS: dict[str, frozenset[MachineState]] = {
    "machine_log": _ALL,
    "pause_machine": _ALL - {MachineState.PAUSED},
    "resume_machine": _ALL - {MachineState.ACTIVE},
    "drain_machine": _ALL - {MachineState.DRAINING},
    "update_machine": _ALL,
    "remove_machine": _ALL,
}
"""The operations that change something at a machine in these states, by their names. The head offers none."""


def offered(machine: Machine) -> list[str]:
    return [name for name, states in OFFERS.items() if machine.state in states]


def condition(machine: Machine, *, now: float, quiet: bool, silent_after: float) -> PlaceState:
    """`quiet`: now is within its quiet hours. What a person asked for comes first, then what cannot be changed here.

    `silent_after`: seconds without a beat. A new run needs a machine that was heard lately; a list waits for the reap.
    """
    if machine.state in _BY_PERSON:
        return _BY_PERSON[machine.state]
    if protocol_fit(machine.protocol) is not ProtocolFit.SERVED:
        return PlaceState.OUTDATED
    if machine.heard_at is None or now - machine.heard_at >= silent_after:
        return PlaceState.SILENT
    if machine.is_full:
        return PlaceState.FULL
    return PlaceState.QUIET if quiet else PlaceState.OPEN


def advice(machine: Machine, state: PlaceState) -> str:
    """What is wrong with a machine, and the command that fixes it; empty where nothing is."""
    name = machine.name
    match state:
        case PlaceState.SILENT:
            return f"it does not answer: start `legion machine join` there, or `legion machine remove {name}`"
        case PlaceState.OUTDATED if protocol_fit(machine.protocol) is ProtocolFit.OLD:
            return (
                f"its Legion {machine.version} is too old for this one: install the release of the head there, then "
                f"`legion machine update {name}`. What it runs continues."
            )
        case PlaceState.OUTDATED:
            return f"its Legion {machine.version} is too new for this one: update the head. What it runs continues."
        case PlaceState.FULL:
            return (
                f"its disk is full, {machine.disk_free_mb} MB are free and {machine.disk_floor_mb} MB are needed: "
                "delete files there, or set `environment.free_mb` in its settings"
            )
        case PlaceState.PAUSED if machine.is_unreliable:
            return (
                f"it lost runs {machine.lost} times in a row: read its log there, then `legion machine resume {name}`"
            )
        case PlaceState.PAUSED:
            return f"it is paused: `legion machine resume {name}`"
        case PlaceState.DRAINING:
            return f"it is draining: `legion machine resume {name}`, or remove or update it when its runs have ended"
        case _:
            return ""


# Leases: how long a machine may work without an answer of the head, and when the head gives its runs away.
#
# No clock of one machine is ever compared with that of another. The machine counts from the moment at which it SENT the
# last beat that was answered; the head counts from the moment at which it received one, which is later. So the machine
# always stops before the head gives its runs to another place, however slow the network is and whatever the clocks
# show.


@dataclass(frozen=True, kw_only=True)
class LeaseTimes:
    """Seconds."""

    beat: float = 15.0
    """Between two beats of a machine."""
    quiet: float = 45.0
    """Without an answer for so long, a machine starts nothing new."""
    stop: float = 60.0
    """Without an answer for so long, a machine stops its agents."""
    reap: float = 90.0
    """Without a beat for so long, the head gives the machine's runs away."""

    def __post_init__(self) -> None:
        if not 0 < self.beat < self.quiet < self.stop < self.reap:
            raise BadInput(f"A lease needs beat < quiet < stop < reap, and these are {self}.")

    @classmethod
    def scaled(cls, reap: float) -> LeaseTimes:
        """The same proportions, with this time until runs are given away."""
        share = reap / cls.reap
        return cls(beat=cls.beat * share, quiet=cls.quiet * share, stop=cls.stop * share, reap=reap)


class LeasePhase(Enum):
    """What a machine may do."""

    FRESH = "fresh"
    QUIET = "quiet"
    """Its runs continue, and nothing new starts."""
    OVER = "over"
    """Its agents are stopped."""


def phase(*, sent: float, now: float, times: LeaseTimes) -> LeasePhase:
    """For a machine whose last answered beat was sent at `sent`, both by a clock that also counts a suspended system.

    A clock that went back proves nothing about the time that passed, so the lease is over.
    """
    silent = now - sent
    if silent < 0 or silent >= times.stop:
        return LeasePhase.OVER
    return LeasePhase.QUIET if silent >= times.quiet else LeasePhase.FRESH


class HeadLeases:
    """The head's side: which runs were not named in a beat for too long. It is given times of one monotonic clock.

    A `mark` is any value that changes with each beat that names the run, whichever head received it. A run that is seen
    for the first time counts as just named: a head that has just started knows nothing of the time before.
    """

    def __init__(self, times: LeaseTimes) -> None:
        self._times = times
        self._heard: dict[int, tuple[Hashable, float]] = {}

    def observe(self, marks: Mapping[int, Hashable], now: float) -> None:
        """The marks of all open runs, as the store has them now."""
        for run, mark in marks.items():
            known = self._heard.get(run)
            if known is None or known[0] != mark:
                self._heard[run] = (mark, now)
        for gone in self._heard.keys() - marks.keys():
            del self._heard[gone]

    def lapsed(self, now: float) -> frozenset[int]:
        return frozenset(one for one, (_, heard) in self._heard.items() if now - heard >= self._times.reap)
