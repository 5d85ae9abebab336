"""The mirrors of the head's hubs: fetches the code of a job, and sends a change back, in pieces that can be resumed."""

from __future__ import annotations

import hashlib
import logging
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

from legion.domain.errors import LegionError
from legion.git.hub import machine_packs
from legion.git.hub.repository import Hub
from legion.jobs.machines.travel import MachineJob
from legion.machine.link import HeadLink, HeadRefused, OffsetGap
from legion.system import crash, loops
from legion.system.crash import Point
from legion.system.paths import DataDir

_PIECE = 4 << 20
_SHA256 = 64


class Mirrors:
    """All mirrors of this machine, for many threads. What this process has seen in them is not asked of git again."""

    def __init__(self, data: DataDir, link: HeadLink) -> None:
        self._data = data
        self._link = link
        self._locks: defaultdict[int, threading.Lock] = defaultdict(threading.Lock)
        self._known: defaultdict[int, set[str]] = defaultdict(set)
        self._targets: dict[int, str] = {}

    def targets(self) -> dict[int, str]:
        """Of each project whose code is here."""
        places = self._data.projects.glob("*/hub.git")
        for number in (int(place.parent.name) for place in places if place.parent.name.isdecimal()):
            if number not in self._targets:
                self._targets[number] = self._hub(number).target() or ""
        return dict(self._targets)

    def prepare(self, job: MachineJob) -> None:
        """Everything that the job needs. Raises a MachineError, or GitError for a damaged pack."""
        project = job.project.id
        with self._locks[project]:
            known = self._known[project]
            if known.issuperset(job.commits) and self._targets.get(project) == job.target:
                return
            object_format = "sha256" if len(job.base) == _SHA256 else "sha1"
            mirror = machine_packs.make_mirror(self._path(project), object_format=object_format)
            if machine_packs.lacks(mirror, job.commits):
                pack = _fetch(self._link, job, machine_packs.mirrored(mirror), self._data.runs / job.run.name)
                crash.reach(Point.MACHINE_FETCH_AFTER_PACK)
                try:
                    machine_packs.receive(mirror, pack, commits=job.commits, target=job.target)
                finally:
                    pack.unlink()
            else:
                machine_packs.set_target(mirror, job.target)
            known.update(job.commits)
            self._targets[project] = job.target

    def follow(self, project: int, target: str) -> None:
        """Fetch the target before a job needs it. Raises a MachineError, or GitError for a damaged pack."""
        with self._locks[project]:
            # Should it fail, the next job brings it: the head is not asked twice.
            self._targets[project], before = target, self._targets.get(project)
            if before == target:
                return
            mirror = self._hub(project)
            if machine_packs.lacks(mirror, [target]):
                query = {"commit": target, "have": ",".join(machine_packs.mirrored(mirror))}
                answer = self._link.call("GET", f"/projects/{project}/pack", query=query)
                with tempfile.NamedTemporaryFile(dir=mirror.path, suffix=".pack") as pack:
                    pack.write(answer.body)
                    pack.flush()
                    machine_packs.receive(mirror, Path(pack.name), commits=[target], target=target)
            else:
                machine_packs.set_target(mirror, target)
            self._known[project].add(target)

    def _hub(self, project: int) -> Hub:
        return Hub(self._path(project))

    def _path(self, project: int) -> Path:
        return self._data.project(project) / "hub.git"


def _fetch(link: HeadLink, job: MachineJob, have: tuple[str, ...], folder: Path) -> Path:
    """The pack as a file in the run's folder. What arrived before a fault is not sent again: the head answers the same
    question with the same bytes.
    """
    path = f"/runs/{job.run.name}/{job.run.generation}/pack"
    named = hashlib.sha256(f"{job.run.generation} {' '.join(have)}".encode()).hexdigest()[:16]
    file = folder / f"arriving-{named}.pack"
    with file.open("ab") as pack:
        while True:
            answer = link.call("GET", path, query={"have": ",".join(have), "offset": str(pack.tell())}, patience=60.0)
            pack.write(answer.body)
            if pack.tell() >= int(answer.headers.get("legion-size", "0")) or not answer.body:
                return file


def send(link: HeadLink, mirror: Hub, job: MachineJob, folder: Path, commit: str, *, late: bool) -> None:
    """Send what leads to the commit. A head that has a part of the same pack gets the rest."""
    if commit in (job.base, job.start):
        return
    # The same bytes at each try: git may pack the same objects in another way.
    file = folder / f"leaving-{commit}.pack"
    if not file.exists():
        have = [one for one in (job.base, job.start, job.target) if one is not None]
        machine_packs.write_change(mirror, file, head=commit, have=have)
    path = f"/runs/{job.run.name}/{job.run.generation}/pack"
    query = {"late": "1"} if late else {}
    offset = 0
    with file.open("rb") as pack:
        while piece := _piece(pack, offset):
            try:
                size = link.call("PUT", path, query={**query, "offset": str(offset)}, body=piece, patience=60.0)
                now = int(size.json()["size"])
            except OffsetGap as gap:
                now = gap.size
            if now == offset:
                raise HeadRefused(f"The head takes nothing more of {file.name}.")
            offset = now


def _piece(pack: IO[bytes], offset: int) -> bytes:
    pack.seek(offset)
    return pack.read(_PIECE)


# Fetches the targets of projects as they move, so that a run of them finds its code and a warm worktree here.

log = logging.getLogger("legion")


class TargetFollower:
    """A thread of the worker. `fetched` is called after each target that arrived."""

    def __init__(self, mirrors: Mirrors, fetched: Callable[[], None]) -> None:
        self._mirrors = mirrors
        self._fetched = fetched
        self._wanted: dict[int, str] = {}
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopping = False
        self._thread = loops.lasting(
            self._follow, name="targets", stopped=lambda pause: self._wake.wait(pause) and self._stopping
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping = True
        self._wake.set()

    def moved(self, targets: Mapping[int, str]) -> None:
        with self._lock:
            self._wanted.update(targets)
        self._wake.set()

    def _follow(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._stopping:
                return
            with self._lock:
                wanted, self._wanted = self._wanted, {}
            for project, commit in wanted.items():
                try:
                    self._mirrors.follow(project, commit)
                except (LegionError, OSError) as trouble:
                    # The next job of the project fetches it.
                    log.info("the target of project %d is not here yet: %s", project, trouble)
            self._fetched()
