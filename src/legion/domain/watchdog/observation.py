"""Observations of a live run between two watchdog checks: the state of its files, and since when its processes are
idle.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

_NOISE = 0.05
"""Seconds of processor time that do not count: a waiting process wakes up now and then."""
_NOISE_SHARE = 0.002
"""And this share of the elapsed time."""


@dataclass(frozen=True, kw_only=True)
class ProcessLoad:
    """What a set of processes has used so far."""

    cpu: float
    """Seconds."""
    bytes: int
    """Read and written."""
    processes: str
    """Identifies the set; another text for any other set."""
    count: int


NO_PROCESSES = ProcessLoad(cpu=0.0, bytes=0, processes="", count=0)


@dataclass(frozen=True, kw_only=True)
class Observation:
    run: int
    tree: str = ""
    tree_since: int = 0
    """The number of the journal's last event when the files were first seen in this state."""
    tree_at: float = 0.0
    """When they were last seen to change; 0 where they never did."""
    idle_since: float | None = None
    cpu: float = 0.0
    bytes: int = 0
    processes: str = ""

    @property
    def known_tree_since(self) -> int | None:
        return self.tree_since if self.tree else None


def felt(watch: Observation, load: ProcessLoad | None, now: float) -> Observation:
    """Updated with what the processes have done since; None where that is unknown."""
    if load is None or not load.count:
        return replace(watch, idle_since=None, cpu=0.0, bytes=0, processes="")
    since = watch.idle_since if watch.idle_since is not None else now
    allowed = _NOISE + _NOISE_SHARE * (now - since)
    same = load.processes == watch.processes and load.bytes == watch.bytes
    if same and 0 <= load.cpu - watch.cpu <= allowed:
        return replace(watch, idle_since=since)
    return replace(watch, idle_since=None, cpu=load.cpu, bytes=load.bytes, processes=load.processes)


def looked(watch: Observation, tree: str, number: int, now: float) -> Observation:
    """Updated with the present state of the files, after this event of the journal."""
    if tree == watch.tree:
        return watch
    return replace(watch, tree=tree, tree_since=number, tree_at=now if watch.tree else watch.tree_at)


def worth_keeping(before: Observation | None, now: Observation) -> bool:
    """The counters of a busy process are outdated a moment later; a new daemon measures them again."""
    if before is None:
        return now.idle_since is not None or bool(now.tree)
    return before.tree != now.tree or before.idle_since != now.idle_since
