"""Sends what a run makes to the head: its growing files, each from where the copy ends, and its tree at intervals."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

from legion.domain.errors import LegionError
from legion.jobs.machines.travel import MachineJob
from legion.jobs.workspace.save import Saved
from legion.machine.link import Fenced, HeadLink, HeadRefused, HeadUnreachable, NotAMachine, OffsetGap, OutOfDate
from legion.runner.spec import RunFolder
from legion.system import loops

log = logging.getLogger("legion")

_PIECE = 1 << 20
_LOOK_EVERY = 0.25
"""Seconds between two looks at the files: output sends no signal."""
_LONGEST_PAUSE = 10.0


class Uploader:
    """A thread per run. `fenced` is called once where the head no longer wants the run from this machine."""

    def __init__(self, link: HeadLink, job: MachineJob, folder: Path, fenced: Callable[[], None]) -> None:
        self._link = link
        self._job = job
        known = RunFolder(folder)
        self._files = {"journal": known.journal, "output": known.output, "complaints": known.complaints}
        self._offsets = dict.fromkeys(self._files, 0)
        """Where the head's copy of each ends. The head corrects it where a worker before this one has sent some."""
        self._refused: set[str] = set()
        """Files of which the head takes no more: they are too long."""
        self._fenced = fenced
        self._ending = threading.Event()
        self._given_up = threading.Event()
        self._thread = threading.Thread(target=self._follow, name=f"upload {job.run.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def finish(self) -> None:
        """The files grow no more: return when the head has all of them, or the run was fenced or given up."""
        self._ending.set()
        self._thread.join()

    def give_up(self) -> None:
        """The worker ends: leave the rest to the next one."""
        self._given_up.set()
        self._ending.set()

    def _follow(self) -> None:
        pause = _LOOK_EVERY
        while not self._given_up.is_set():
            last = self._ending.is_set()
            try:
                self._send_all()
            except (Fenced, NotAMachine):
                self._fenced()
                return
            except (HeadUnreachable, HeadRefused, OutOfDate):
                pause = min(pause * 2, _LONGEST_PAUSE)
            else:
                pause = _LOOK_EVERY
                if last:
                    return
            if last:
                self._given_up.wait(pause)
            else:
                self._ending.wait(pause)

    def _send_all(self) -> None:
        for name, path in self._files.items():
            if name not in self._refused:
                self._send(name, path)

    def _send(self, name: str, path: Path) -> None:
        while True:
            offset = self._offsets[name]
            try:
                with path.open("rb") as file:
                    file.seek(offset)
                    piece = file.read(_PIECE)
            except FileNotFoundError:
                return
            if not piece:
                return
            try:
                self._offsets[name] = self._put(name, offset, piece)
                if self._offsets[name] == offset:
                    raise HeadRefused("The head takes nothing more of it.")
            except OffsetGap as gap:
                self._offsets[name] = gap.size
            except HeadRefused as refused:
                log.error("run %s: the rest of its %s stays here: %s", self._job.run.name, name, refused.message)
                self._refused.add(name)
                return

    def _put(self, name: str, offset: int, piece: bytes) -> int:
        run = self._job.run
        path = f"/runs/{run.name}/{run.generation}/{name}"
        answer = self._link.call("PUT", path, query={"offset": str(offset)}, body=piece).json()
        return int(answer["size"])


BEATS = 8
"""Between two snapshots: two minutes where a beat comes every 15 seconds."""


class TreeSnapshots:
    """A thread. `save` makes a commit of the tree, `send` brings it to the head."""

    def __init__(
        self, run: str, *, save: Callable[[], Saved | None], send: Callable[[str], None], every: float
    ) -> None:
        self._run = run
        self._save = save
        self._send = send
        self._every = every
        self._stopping = threading.Event()
        self._thread = loops.lasting(self._repeat, name=f"snapshots {run}", stopped=self._stopping.wait)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Returns when nothing of it works on the tree any more."""
        self._stopping.set()
        self._thread.join()

    def _repeat(self) -> None:
        sent = ""
        while not self._stopping.wait(self._every):
            try:
                saved = self._save()
                if saved is not None and saved.changed and saved.commit != sent and not self._stopping.is_set():
                    self._send(saved.commit)
                    sent = saved.commit
            except (Fenced, NotAMachine):
                return
            except (LegionError, OSError) as trouble:
                # The next one may be sent; the end of the run brings everything anyway.
                log.warning("run %s: no snapshot was sent, will retry: %s", self._run, trouble)
