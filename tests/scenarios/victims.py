"""Kills the parts of a company while its Claude Codes work, and watches the process table for two in one worktree.

A program that stands in for Claude Code counts as one.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import threading
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path

import psutil

from legion.gateway import lifecycle
from legion.gateway.files.folder import GatewayFolder
from legion.runner.journal import JournalEvent, JournalKind, read_journal
from tests.crash import invariants
from tests.support.legion import PATIENCE
from tests.support.models import Company

_LOOK_AGAIN = 0.05


class Who(Enum):
    DAEMON = "daemon"
    GATEWAY = "gateway"
    FORK_SERVER = "fork-server"
    RUNNER = "runner"
    CLAUDE = "claude"
    EVERYTHING = "everything"


class Victims:
    """Finds and kills the processes of one company, and starts the daemon again where it was among them."""

    def __init__(self, here: Company) -> None:
        self._here = here
        self._squad = here.squad
        self._gateway = GatewayFolder(here.squad.data.gateway)

    def kill(self, who: Who, ticket: int) -> None:
        match who:
            case Who.DAEMON:
                self._squad.kill()
                self._here.start()
            case Who.EVERYTHING:
                self.cut_the_power()
                self._here.start()
            case Who.GATEWAY:
                until(lambda: lifecycle.address(self._gateway), self._here, "a living gateway")
                _end([self.gateway()])
            case Who.FORK_SERVER:
                _end([self.fork_server()])
            case Who.RUNNER:
                _end([self.runner(ticket)])
            case Who.CLAUDE:
                # Its sandbox may still be on the way to it.
                until(lambda: self.claudes(ticket), self._here, "a living Claude Code")
                _end(self.claudes(ticket))

    def cut_the_power(self) -> None:
        """kill -9 to all of it at once."""
        victims = self.everything()
        _end(victims)
        self._squad.kill()

    def everything(self) -> list[psutil.Process]:
        """The daemon, the gateway, the runners and all below them; not the provider, which is somebody else's."""
        roots = invariants.processes_of(self._squad.folder, self._squad.data)
        if self._squad.process is not None and self._squad.process.poll() is None:
            roots.append(self.daemon())
        found = {root.pid: root for root in roots if root.pid != self._here.stage.pid}
        for root in list(found.values()):
            with contextlib.suppress(psutil.Error):
                found |= {child.pid: child for child in root.children(recursive=True)}
        return list(found.values())

    def daemon(self) -> psutil.Process:
        assert self._squad.process is not None
        return psutil.Process(self._squad.process.pid)

    def gateway(self) -> psutil.Process:
        return psutil.Process(json.loads(self._gateway.record.read_text())["pid"])

    def fork_server(self) -> psutil.Process:
        return self._squad.fork_server()

    def is_at_work(self, ticket: int) -> bool:
        """Whether the program of its latest run was started, and its runner lives."""
        if not any(event.kind == JournalKind.STARTED.value for event in self.latest(ticket)):
            return False
        try:
            return "legion.runner.forkserver" in self.runner(ticket).cmdline()
        except psutil.Error:
            return False

    def runner(self, ticket: int) -> psutil.Process:
        (opened,) = [event for event in self.latest(ticket) if event.kind == JournalKind.OPENED.value]
        return psutil.Process(int(str(opened.facts["runner"])))

    def claudes(self, ticket: int) -> list[psutil.Process]:
        """The program itself, without its sandbox and its tools."""
        folder = str(self._here.project.worktree(ticket))
        return [psutil.Process(pid) for pid, cwd, _ in _claudes() if cwd == folder]

    def runs(self, ticket: int) -> list[Path]:
        """Its run folders, oldest first."""
        folders = self._squad.data.runs.glob(f"ticket-{ticket}-run-*")
        return sorted(folders, key=lambda folder: int(folder.name.rpartition("-")[2]))

    def latest(self, ticket: int) -> list[JournalEvent]:
        runs = self.runs(ticket)
        return read_journal(runs[-1]) if runs else []

    def journals(self, ticket: int) -> list[JournalEvent]:
        """Readable also while no daemon lives."""
        return [event for run in self.runs(ticket) for event in read_journal(run)]


class Watch:
    """Looks at all processes again and again: which Claude Codes live in which folder, by their pid namespaces."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._seen: dict[str, set[str]] = {}
        self.together: list[tuple[str, list[int]]] = []
        """Folders in which two lived at the same time."""
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._stop.wait(_LOOK_AGAIN):
            now: dict[str, dict[str, int]] = {}
            for pid, cwd, space in _claudes():
                now.setdefault(cwd, {})[space] = pid
            for cwd, spaces in now.items():
                self._seen.setdefault(cwd, set()).update(spaces)
                if len(spaces) > 1:
                    self.together.append((cwd, sorted(spaces.values())))

    def saw(self, folder: Path) -> bool:
        return str(folder) in self._seen

    def is_clear(self, folder: Path) -> bool:
        """Nothing lives any more of all Claude Codes that ever worked in this folder, tools included."""
        spaces = self._seen.get(str(folder), set())
        return not any(_link(pid, "ns/pid") in spaces for pid in _pids())


def until(holds: Callable[[], object], here: Company, what: str, patience: float = PATIENCE) -> None:
    """Look again and again while the scripted model lives."""
    stage = os.pidfd_open(here.stage.pid)
    try:
        for _ in range(int(patience / _LOOK_AGAIN)):
            if holds():
                return
            assert not select.select([stage], [], [], _LOOK_AGAIN)[0], "the scripted model died"
    finally:
        os.close(stage)
    raise AssertionError(f"{what} did not come true; the daemon's log ends with:\n{here.squad.log[-3000:]}")


def _end(victims: list[psutil.Process]) -> None:
    assert victims, "somebody was to be killed"
    for victim in victims:
        with contextlib.suppress(psutil.NoSuchProcess):
            victim.kill()
    invariants.wait_until_gone(victims)


def _claudes() -> Iterator[tuple[int, str, str]]:
    """Pid, folder and pid namespace of every living Claude Code."""
    for pid in _pids():
        if _is_claude(pid):
            cwd, space = _link(pid, "cwd"), _link(pid, "ns/pid")
            if cwd is not None and space is not None:
                yield pid, cwd, space


def _is_claude(pid: int) -> bool:
    program = Path(_link(pid, "exe") or "").name
    if not program.startswith("python"):
        return program == "claude"
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(word.endswith(b"/stand-in/claude") for word in words[:3])


def _pids() -> list[int]:
    return psutil.pids()


def _link(pid: int, name: str) -> str | None:
    try:
        return os.readlink(f"/proc/{pid}/{name}")  # noqa: PTH115 - asked for every process, again and again
    except OSError:
        return None
