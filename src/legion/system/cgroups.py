"""Groups of processes with a limit of memory and of processes: the kernel's cgroups, where this user may make some.

A process that joins a group takes its later children along, and only they are limited once it has left again. Both
versions are known: one folder for everything (version 2), or one folder for each kind of limit (version 1).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_PARENT = "legion"
_ALL_RUNS = 0.9
"""The share of the machine's memory that all groups have together: the rest is the daemon's and the person's."""
_KINDS = ("memory", "pids")
_MEMORY_FILES = {2: "memory.max", 1: "memory.limit_in_bytes"}
_MEMORY_EVENTS = {2: "memory.events", 1: "memory.oom_control"}


@dataclass(frozen=True, kw_only=True)
class GroupLimits:
    """The most that the processes of one group may use together; None: no limit."""

    memory: int | None = None
    """In bytes."""
    processes: int | None = None

    @property
    def is_empty(self) -> bool:
        return self.memory is None and self.processes is None


@dataclass(frozen=True, kw_only=True)
class GroupHome:
    """Where this process can make groups. In version 2 both kinds of limit have the same folder."""

    version: int
    folders: Mapping[str, Path]
    """By kind of limit: the folder that gets ours."""
    back: Mapping[str, Path]
    """By kind of limit: the group that this process is in."""

    def group(self, run_dir: Path) -> ProcessGroup:
        """The group of a run, by the place of its folder. Nothing is made yet."""
        key = hashlib.sha256(os.fsencode(run_dir.absolute())).hexdigest()[:16]
        return ProcessGroup(home=self, name=f"run-{key}")

    def sweep(self) -> None:
        """Remove the groups without processes: those of runs whose runner was killed."""
        for folder in set(self.folders.values()):
            for group in (folder / _PARENT).glob("run-*"):
                # The kernel refuses while a process is in it.
                with contextlib.suppress(OSError):
                    group.rmdir()


@dataclass(frozen=True, kw_only=True)
class ProcessGroup:
    home: GroupHome
    name: str

    def make(self, limits: GroupLimits) -> None:
        for kind, folder in self.home.folders.items():
            parent = folder / _PARENT
            parent.mkdir(exist_ok=True)
            if self.home.version == 2:
                _write(parent / "cgroup.subtree_control", " ".join(f"+{one}" for one in _KINDS))
            if kind == "memory":
                _write(parent / _MEMORY_FILES[self.home.version], str(int(machine_memory() * _ALL_RUNS)))
            (parent / self.name).mkdir(exist_ok=True)
        if limits.memory is not None:
            _write(self._folder("memory") / _MEMORY_FILES[self.home.version], str(limits.memory))
            # Without this a group that is full fills the swap next, and slows down the whole machine.
            with contextlib.suppress(OSError):
                _write(self._folder("memory") / "memory.swap.max", "0")
        if limits.processes is not None:
            _write(self._folder("pids") / "pids.max", str(limits.processes))

    @contextlib.contextmanager
    def joined(self) -> Iterator[None]:
        """The children that are started inside are in the group; this process leaves it again."""
        try:
            for folder in dict.fromkeys(map(self._folder, self.home.folders)):
                _join(folder)
            yield
        finally:
            for back in self.home.back.values():
                # A process that cannot leave is limited together with its children.
                with contextlib.suppress(OSError):
                    _join(back)

    def trouble(self, limits: GroupLimits) -> str:
        """Which limit was reached, as a sentence; empty if none was."""
        if _counted(self._folder("memory") / _MEMORY_EVENTS[self.home.version], "oom_kill"):
            return f"It reached its memory limit of {(limits.memory or 0) / 2**30:.1f} GB (`sandbox.memory_gb`)."
        if _counted(self._folder("pids") / "pids.events", "max"):
            return f"It reached its limit of {limits.processes} processes (`sandbox.processes`)."
        return ""

    def remove(self) -> None:
        """A group whose last process is still ending stays; `sweep` removes it."""
        for kind in self.home.folders:
            with contextlib.suppress(OSError):
                self._folder(kind).rmdir()

    def _folder(self, kind: str) -> Path:
        return self.home.folders[kind] / _PARENT / self.name


def find(root: Path = Path("/")) -> GroupHome | None:
    """The nearest place where this process may make groups with both limits. `root` is another one in tests."""
    try:
        mounts = (root / "proc/self/mounts").read_text().splitlines()
        mine = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    own = {kind: path for _, kinds, path in (line.split(":", 2) for line in mine) for kind in kinds.split(",")}
    places = [(words[2], root / words[1].lstrip("/"), words[3].split(",")) for words in map(str.split, mounts)]
    unified = next((place for kind, place, _ in places if kind == "cgroup2"), None)
    if unified is not None and (found := _version_2(unified, own.get("", "/"))) is not None:
        return found
    return _version_1({kind: place for type_, place, options in places if type_ == "cgroup" for kind in options}, own)


def machine_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _version_2(mount: Path, path: str) -> GroupHome | None:
    own = mount / path.lstrip("/")
    for folder in own.parents if own != mount else (own,):
        if not folder.is_relative_to(mount):
            return None
        offered = _read(folder / "cgroup.subtree_control").split()
        if all(kind in offered for kind in _KINDS) and _may_move(folder) and _may_move(own):
            return GroupHome(version=2, folders=dict.fromkeys(_KINDS, folder), back={"": own})
    return None


def _version_1(mounts: Mapping[str, Path], own: Mapping[str, str]) -> GroupHome | None:
    folders = {}
    for kind in _KINDS:
        if kind not in mounts:
            return None
        here = mounts[kind] / own.get(kind, "/").lstrip("/")
        # A container sees its own part of the tree as the root, and its path from outside.
        folders[kind] = here if here.is_dir() else mounts[kind]
        if not _may_move(folders[kind]):
            return None
    return GroupHome(version=1, folders=folders, back=folders)


def _may_move(folder: Path) -> bool:
    """Whether this process may make groups in the folder, and move processes between those and it."""
    return os.access(folder, os.W_OK) and os.access(folder / "cgroup.procs", os.W_OK)


def _join(folder: Path) -> None:
    _write(folder / "cgroup.procs", "0")


def _write(file: Path, text: str) -> None:
    # The kernel's files take one write, and no file is ever made here.
    handle = os.open(file, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(handle, text.encode())
    finally:
        os.close(handle)


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""


def _counted(file: Path, name: str) -> int:
    facts = dict(line.split(maxsplit=1) for line in _read(file).splitlines() if " " in line)
    return int(facts.get(name, 0))
