"""What is remembered of a live run between two looks: how its files were, and since when its processes do nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace

_NOISE = 0.05
"""Seconds of a processor that do not count: a process that waits wakes up now and then."""
_NOISE_SHARE = 0.002
"""And this share of the time that has passed."""


@dataclass(frozen=True, kw_only=True)
class ProcessLoad:
    """What some processes have used so far."""

    cpu: float
    """Seconds."""
    bytes: int
    """Read and written."""
    processes: str
    """Which they are; another text for any others."""
    count: int


NOBODY = ProcessLoad(cpu=0.0, bytes=0, processes="", count=0)


@dataclass(frozen=True, kw_only=True)
class Observation:
    run: int
    tree: str = ""
    tree_since: int = 0
    """The number of the journal's last event when the files were first seen like this."""
    tree_at: float = 0.0
    """When they were last seen to be other than before; 0 where they never were."""
    idle_since: float | None = None
    cpu: float = 0.0
    bytes: int = 0
    processes: str = ""

    @property
    def known_tree_since(self) -> int | None:
        return self.tree_since if self.tree else None


def felt(watch: Observation, load: ProcessLoad | None, now: float) -> Observation:
    """With what the processes have done since; None where nobody can tell."""
    if load is None or not load.count:
        return replace(watch, idle_since=None, cpu=0.0, bytes=0, processes="")
    since = watch.idle_since if watch.idle_since is not None else now
    allowed = _NOISE + _NOISE_SHARE * (now - since)
    same = load.processes == watch.processes and load.bytes == watch.bytes
    if same and 0 <= load.cpu - watch.cpu <= allowed:
        return replace(watch, idle_since=since)
    return replace(watch, idle_since=None, cpu=load.cpu, bytes=load.bytes, processes=load.processes)


def looked(watch: Observation, tree: str, number: int, now: float) -> Observation:
    """With how the files are now, behind this event of the journal."""
    if tree == watch.tree:
        return watch
    return replace(watch, tree=tree, tree_since=number, tree_at=now if watch.tree else watch.tree_at)


def worth_keeping(before: Observation | None, now: Observation) -> bool:
    """What a busy process has used is old a moment later; a new daemon measures it anew."""
    if before is None:
        return now.idle_since is not None or bool(now.tree)
    return before.tree != now.tree or before.idle_since != now.idle_since
