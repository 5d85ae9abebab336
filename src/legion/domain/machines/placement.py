"""Placement: on which machine a run starts, and why there or nowhere.

A place fits if it has the labels that the run asks for, takes new work, and has a free slot. Of the places that fit,
the one with the lowest cost is chosen:

    load            the share of its slots that would be taken
    cold code       the project's code has to be copied there first
    other kind      the share of its slots that work of the other kind has taken: reviews suffer from builds
    spare labels    it has labels that the run does not need, and should stay free for runs that do

Which run is placed next is not decided here: `decide` offers the projects' runs in turn, so they share all places.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from heapq import heapify, heappop, heapreplace

COLD_COST = 0.25
OTHER_KIND_COST = 0.5
SPARE_LABELS_COST = 0.5


class PlaceState(Enum):
    """Whether a place takes new work."""

    OPEN = "open"
    PAUSED = "paused"
    """A person paused it."""
    DRAINING = "draining"
    """It is to be removed or updated when its runs have ended."""
    QUIET = "quiet"
    """Its quiet hours last until `RunPlace.quiet_until`."""
    SILENT = "silent"
    """It was not heard for so long that its lease ended."""
    OUTDATED = "outdated"
    """Its release is too far from the head's."""
    FULL = "disk full"
    """Less of its disk is free than its settings ask for."""


@dataclass(frozen=True, kw_only=True)
class RunPlace:
    """The head or a machine, as far as placement depends on it."""

    name: str
    slots: int
    labels: frozenset[str] = frozenset()
    head: bool = False
    only_stays: bool = False
    """It takes only what can run nowhere else."""
    state: PlaceState = PlaceState.OPEN
    quiet_until: float | None = None
    mirrors: frozenset[int] = frozenset()
    """Projects whose code it has. The head has all of it."""
    toolchain: str = ""
    """A digest of the programs that checks use."""
    builders: int = 0
    readers: int = 0

    @property
    def free(self) -> int:
        return self.slots - self.builders - self.readers

    def has(self, label: str) -> bool:
        """The name of a place is one of its labels."""
        return label in self.labels or label == self.name

    def is_warm(self, project: int) -> bool:
        return self.head or project in self.mirrors


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What a run needs of its place."""

    project: int
    labels: frozenset[str] = frozenset()
    reads: bool = False
    """It reviews, advises or plans; it builds nothing."""
    stays: bool = False
    """It can only run on the head."""
    toolchain: str | None = None
    """The digest that its place must have; None: any."""


@dataclass(frozen=True)
class Placed:
    machine: str
    why: str


class Lack(Enum):
    """Why a run fits nowhere."""

    MACHINE = "machine"
    """No place that takes new work has what it asks for: it waits for a person or for a machine's return."""
    HOURS = "hours"
    """Only quiet hours are in the way: `until` says when they end."""
    SLOT = "slot"
    """The places that fit are full: it waits for the end of another run."""


@dataclass(frozen=True)
class Nowhere:
    lack: Lack
    why: str
    until: float | None = None


def place(wanted: Wanted, places: Iterable[RunPlace]) -> Placed | Nowhere:
    return PlacementRound(places).place(wanted)


def cost(wanted: Wanted, place: RunPlace) -> float:
    """The lower, the better."""
    return _cost_when_warm(wanted, place) + (0.0 if place.is_warm(wanted.project) else COLD_COST)


def _cost_when_warm(wanted: Wanted, place: RunPlace) -> float:
    load = (place.slots - place.free + 1) / place.slots
    other = (place.builders if wanted.reads else place.readers) / place.slots
    spare = SPARE_LABELS_COST if place.labels - wanted.labels else 0.0
    return load + OTHER_KIND_COST * other + spare


class PlacementRound:
    """Places one run after the other. Each one that it places takes a slot from those that follow.

    So within a round the cost of a place only grows, and heaps of places stay valid but for their first entries. One
    heap per kind of run leaves the code aside; one per project has the few places with its code.
    """

    def __init__(self, places: Iterable[RunPlace]) -> None:
        self._places = {one.name: one for one in places}
        self._warm: dict[int, list[str]] = {}
        for one in self._places.values():
            for project in one.mirrors:
                self._warm.setdefault(project, []).append(one.name)
        self.free = sum(max(0, one.free) for one in self._places.values() if one.state is PlaceState.OPEN)
        """Slots of places that take new work."""
        self._heads = [one.name for one in self._places.values() if one.head]
        self._heaps: dict[Wanted, _Heap] = {}
        self._nowhere: dict[Wanted, Nowhere] = {}
        """They stay true: no slot becomes free in a round."""

    def place(self, wanted: Wanted) -> Placed | Nowhere:
        found = self.find(wanted)
        if isinstance(found, Placed):
            self.take(found.machine, reads=wanted.reads)
        return found

    def find(self, wanted: Wanted) -> Placed | Nowhere:
        """Where the run would be placed now. It takes no slot."""
        if wanted in self._nowhere:
            return self._nowhere[wanted]
        found = self._cheapest(wanted)
        if found is not None:
            return Placed(found.name, _why(wanted, found))
        self._nowhere[wanted] = nowhere = _nowhere(wanted, self._places.values())
        return nowhere

    def take(self, name: str, *, reads: bool) -> None:
        """Count a run there. One on a machine that was removed counts nowhere."""
        one = self._places.get(name)
        if one is not None:
            self.free -= one.state is PlaceState.OPEN and one.free > 0
            self._places[name] = replace(one, readers=one.readers + reads, builders=one.builders + (not reads))

    def _cheapest(self, wanted: Wanted) -> RunPlace | None:
        anywhere = self._first(replace(wanted, project=_ANY), self._places)
        if anywhere is None or anywhere.is_warm(wanted.project):
            return anywhere
        warm = self._first(wanted, [*self._warm.get(wanted.project, ()), *self._heads])
        both = [one for one in (anywhere, warm) if one is not None]
        return min(both, key=lambda one: (cost(wanted, one), not one.head, one.name))

    def _first(self, wanted: Wanted, names: Iterable[str]) -> RunPlace | None:
        """The cheapest of these places if all had the code. `names` counts at the first call only."""
        heap = self._heaps.get(wanted)
        if heap is None:
            usable = [self._places[name] for name in set(names) if _takes(wanted, self._places[name])]
            heap = self._heaps[wanted] = [_entry(wanted, one) for one in usable]
            heapify(heap)
        while heap:
            one = self._places[heap[0][-1]]
            if one.free <= 0:
                heappop(heap)
                continue
            now = _entry(wanted, one)
            if now == heap[0]:
                return one
            heapreplace(heap, now)
        return None


_ANY = 0
"""No project has this number."""
_Heap = list[tuple[float, bool, str]]
"""Cost, whether it is a machine and not the head, name: the smallest is chosen."""


def _entry(wanted: Wanted, place: RunPlace) -> tuple[float, bool, str]:
    return _cost_when_warm(wanted, place), not place.head, place.name


def _takes(wanted: Wanted, place: RunPlace) -> bool:
    return place.state is PlaceState.OPEN and place.free > 0 and _suits(wanted, place)


def _suits(wanted: Wanted, place: RunPlace) -> bool:
    if (wanted.stays and not place.head) or (place.only_stays and not wanted.stays):
        return False
    if wanted.toolchain is not None and place.toolchain != wanted.toolchain:
        return False
    return all(place.has(label) for label in wanted.labels)


def _why(wanted: Wanted, place: RunPlace) -> str:
    """`place` as it was before the run."""
    reasons = [f"has {_listed(wanted.labels)}"] if wanted.labels else []
    reasons.append(f"{place.free} of {place.slots} slots were free")
    if not place.head:
        reasons.append("has the code" if place.is_warm(wanted.project) else "gets the code first")
    return ", ".join(reasons)


def _nowhere(wanted: Wanted, places: Iterable[RunPlace]) -> Nowhere:
    by_name = sorted(places, key=lambda one: one.name)
    suitable = [one for one in by_name if _suits(wanted, one)]
    if not suitable:
        others = [one for one in by_name if _suits(replace(wanted, toolchain=None), one)]
        return Nowhere(Lack.MACHINE, _unsuitable(wanted, others, any(one.only_stays for one in by_name)))
    full = [one for one in suitable if one.state is PlaceState.OPEN]
    if full:
        return Nowhere(Lack.SLOT, f"waits for a free slot on {_some(full)}")
    quiet = [one for one in suitable if one.state is PlaceState.QUIET]
    if quiet:
        until = min((one.quiet_until for one in quiet if one.quiet_until is not None), default=None)
        return Nowhere(Lack.HOURS, f"waits for the end of the quiet hours of {_some(quiet)}", until)
    shut = "; ".join(f"{one.name} {_SHUT[one.state].format(name=one.name)}" for one in suitable[:_MOST_NAMED])
    more = f" (and {len(suitable) - _MOST_NAMED} more)" if len(suitable) > _MOST_NAMED else ""
    return Nowhere(Lack.MACHINE, f"no machine takes it: {shut}{more}")


_SHUT = {
    PlaceState.PAUSED: "is paused, `legion machine resume {name}`",
    PlaceState.DRAINING: "is drained, `legion machine resume {name}`",
    PlaceState.SILENT: "is not reachable",
    PlaceState.FULL: "has a full disk, and takes runs again when there is room",
    PlaceState.OUTDATED: "has a release of Legion that does not fit, `legion machine list` says which to update",
}
_MOST_NAMED = 3


def _unsuitable(wanted: Wanted, others: Sequence[RunPlace], kept_free: bool) -> str:
    """`others` would suit with another toolchain. `kept_free`: the head takes nothing that can run elsewhere."""
    if others:
        named = "; ".join(f"{one.name} has {one.toolchain or 'an unknown one'}" for one in others[:_MOST_NAMED])
        return f"it needs the toolchain {wanted.toolchain}, but {named}: install the same programs there"
    if not wanted.labels:
        if kept_free:
            return "the head takes no agents (`daemon.slots = 0`), no machine is there: `legion machine invite NAME`"
        return "there is no machine"
    labels = ",".join(sorted(wanted.labels))
    return f"no machine has {_listed(wanted.labels)}: `legion machine invite NAME --labels {labels}`"


def _listed(labels: Iterable[str]) -> str:
    return " and ".join(sorted(labels))


def _some(places: Sequence[RunPlace]) -> str:
    names = [one.name for one in places[:_MOST_NAMED]]
    more = len(places) - len(names)
    return f"{', '.join(names)} and {more} more" if more else " or ".join(names)
