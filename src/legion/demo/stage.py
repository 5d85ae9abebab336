"""The stage of a demo: a sample repository, a temporary Legion, and its events as they happen, also across restarts."""

from __future__ import annotations

import importlib.resources
import os
import queue
import re
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from legion.client.discovery import find
from legion.demo.scratch import Scratch
from legion.system import process
from legion.system.process import FinishedProcess, ProgramMissing
from legion.wire.errors import BadInput, LegionError, NotAllowed
from legion.wire.tickets import EventLine

SCRIPTS = Path(__file__).parent / "scripts"
"""Scripts of the model, one file per ticket."""

_FILE = re.compile(r"^-- (\S+) --\n", re.MULTILINE)


@dataclass(frozen=True)
class DemoFolder:
    folder: Path

    @property
    def repository(self) -> Path:
        return self.folder / "invoices"

    @property
    def scratch(self) -> Scratch:
        return Scratch(self.folder)

    def git(self, *arguments: str) -> str:
        return _run(["git", *arguments], self.repository).text.strip()

    def check(self) -> FinishedProcess:
        """Run the project's check in the plain checkout, without [setup]."""
        return process.run(["python3", "-B", "-m", "unittest", "-q"], cwd=self.repository, env=_environment())


def prepare(folder: Path | None) -> DemoFolder:
    """Create all files of the demo in a new folder."""
    stage = DemoFolder(_new_folder(folder))
    _unpack("repository.txtar", stage.repository)
    stage.scratch.prepare()
    _commit_everything(stage)
    return stage


def _new_folder(wanted: Path | None) -> Path:
    if wanted is None:
        return Path(tempfile.mkdtemp(prefix="legion-demo-"))
    folder = wanted.expanduser().absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        is_used = any(folder.iterdir())
    except OSError as error:
        raise NotAllowed(f"{folder} cannot be used for the demo ({error.strerror}): name another folder.") from None
    if is_used:
        raise BadInput(f"{folder} is not empty: name a new folder for the demo.")
    return folder


def _unpack(archive: str, folder: Path) -> None:
    """Unpack an archive: one text with a line `-- path --` before each file."""
    parts = _FILE.split(importlib.resources.files("legion.demo").joinpath(archive).read_text())
    for name, text in zip(parts[1::2], parts[2::2], strict=True):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def _commit_everything(stage: DemoFolder) -> None:
    stage.git("init", "--quiet", "--initial-branch=main")
    stage.git("config", "user.name", "Ada")
    stage.git("config", "user.email", "ada@example.invalid")
    stage.git("add", "--all")
    stage.git("commit", "--quiet", "--no-gpg-sign", "--message", "A small library for invoices")


def _run(command: list[str], cwd: Path) -> FinishedProcess:
    try:
        done = process.run(command, cwd=cwd, env=_environment())
    except ProgramMissing as missing:
        raise LegionError(f"The demo needs {missing}, which is not installed: install it and try again.") from None
    if done.code != 0:
        raise LegionError(f"`{' '.join(command)}` failed: {done.complaint}")
    return done


def _environment() -> dict[str, str]:
    """The environment without GIT_ and PYTHON variables, which would point the programs elsewhere."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "PYTHON"))}


_RECONNECT = 0.2


class EventFollower:
    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._queue: queue.SimpleQueue[EventLine] = queue.SimpleQueue()
        self._last = 0
        self._over = threading.Event()
        threading.Thread(target=self._listen, daemon=True, name="events").start()

    def wait(self, seconds: float) -> Iterator[EventLine]:
        """Events since the last call; waits for the first one."""
        with suppress(queue.Empty):
            yield self._take(self._queue.get(timeout=seconds))
            while True:
                yield self._take(self._queue.get_nowait())

    def caught_up(self, last: int) -> bool:
        return self._last >= last

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()

    def _take(self, event: EventLine) -> EventLine:
        self._last = event.n
        return event

    def _listen(self) -> None:
        last = 0
        while not self._over.is_set():
            with suppress(LegionError):
                for event in find(self._data_dir).events(last):
                    if event is not None:
                        last = event.n
                        self._queue.put(event)
            self._over.wait(_RECONNECT)
