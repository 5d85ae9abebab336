"""A real daemon to be killed, agents that wait at gates until the test lets them go on, and eyes on every process."""

from __future__ import annotations

import contextlib
import json
import os
import select
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from legion.runner import launch
from legion.runner.journal import JournalKind, read_journal
from legion.runner.launch import LivingRun
from legion.store.database.transactions import sqlite_url
from tests.crash import invariants
from tests.crash.board import BEGIN
from tests.crash.invariants import Invariant, Scene
from tests.support.legion import Project, Squad
from tests.support.repository import Repository

PATIENCE = 60.0

CONFIG = """\
[checks.test]
run = "sh check.sh"

[agents]
parallel = 4
attempts = 3
"""


class Gate:
    """A program that comes to the gate is heard, and waits there for a word."""

    def __init__(self, shared: Path, name: str) -> None:
        self._arrived, self._go = shared / f"{name}.arrived", shared / f"{name}.go"
        self._handles = []
        for path in (self._arrived, self._go):
            os.mkfifo(path)
            # Open for both, so that it never ends while programs come and go.
            self._handles.append(os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))

    @property
    def script(self) -> str:
        return f"echo here > '{self._arrived}'; read word < '{self._go}'"

    def wait(self) -> None:
        """Until one program is at the gate."""
        ready, _, _ = select.select([self._handles[0]], [], [], PATIENCE)
        assert ready, "nobody came to the gate"
        assert os.read(self._handles[0], 5) == b"here\n"

    def open(self, times: int = 1) -> None:
        """Let so many programs go on, now or when they come."""
        os.write(self._handles[1], b"on\n" * times)

    def close(self) -> None:
        for handle in self._handles:
            os.close(handle)


class Site:
    """One squad with one project, and what is around them."""

    def __init__(self, folder: Path) -> None:
        self.shared = folder / "shared"
        self.shared.mkdir(parents=True)
        self.squad = Squad(folder, settings=f"[sandbox]\nwrite = [{json.dumps(str(self.shared))}]")
        self.repository = Repository(folder / "ada", CONFIG)
        self.repository.commit("ignore", {".gitignore": "*.ignored\n"})
        self.gates: list[Gate] = []

    def open(self) -> Project:
        self._first_target = self.repository.head()
        self.project = self.squad.start().adopt(self.repository)
        return self.project

    def gate(self, name: str = "gate") -> Gate:
        self.gates.append(Gate(self.shared, name))
        return self.gates[-1]

    def agent(self, script: str) -> str:
        return f"SHARED='{self.shared}'\n{BEGIN}\n{script}"

    def starts(self, ticket: int) -> int:
        """How often a program was started for this ticket."""
        lines = (self.shared / "starts").read_text().splitlines()
        return sum(1 for line in lines if line.split()[1] == str(ticket))

    def restart(self) -> None:
        self.squad.kill()
        self.squad.start()

    def daemon(self) -> psutil.Process:
        assert self.squad.process is not None
        return psutil.Process(self.squad.process.pid)

    def fork_server(self) -> psutil.Process:
        return self.squad.fork_server()

    def runner(self, ticket: int) -> psutil.Process:
        return psutil.Process(_fact(self._latest_run(ticket), JournalKind.OPENED, "runner"))

    def program(self, ticket: int) -> psutil.Process:
        """The agent's own first process: the shell that its command line starts, inside the sandbox."""
        first = psutil.Process(_fact(self._latest_run(ticket), JournalKind.STARTED, "pid"))
        inside = first.children()
        return inside[0] if inside else first

    def check_runner(self) -> psutil.Process:
        """The runner of the one check that is being run."""
        (run,) = [run for run in self.squad.data.runs.glob("check-*") if isinstance(launch.settle(run), LivingRun)]
        return psutil.Process(_fact(run, JournalKind.OPENED, "runner"))

    def everything(self) -> list[psutil.Process]:
        """The daemon, its fork server, the runners and all that runs under them."""
        roots = [*invariants.processes_of(self.squad.folder, self.squad.data)]
        if self.squad.process is not None and self.squad.process.poll() is None:
            roots.append(self.daemon())
        found = {process.pid: process for process in roots}
        for root in roots:
            with contextlib.suppress(psutil.Error):
                found |= {process.pid: process for process in root.children(recursive=True)}
        return list(found.values())

    def cut_the_power(self) -> None:
        """Kill all of it at once."""
        victims = self.everything()
        for victim in victims:
            with contextlib.suppress(psutil.NoSuchProcess):
                victim.kill()
        self.squad.kill()
        invariants.wait_until_gone(victims)

    def is_sound(self, *, lost_allowed: bool = True, only: Sequence[Invariant] | None = None) -> None:
        """What landed is collected; end the daemon and look at what it leaves. `only`: not all that must hold else."""
        worktrees = self.project.worktrees
        self.project.collect()
        assert self.squad.end() == 0
        scene = Scene(
            data=self.squad.data,
            url=sqlite_url(self.squad.data.database),
            repository=self.repository.root,
            worktrees=worktrees,
            shared=self.shared,
            first_target=self._first_target,
            lost_allowed=lost_allowed,
        )
        invariants.check(scene, only)

    def close(self) -> None:
        self.squad.close()
        for gate in self.gates:
            gate.close()

    def _latest_run(self, ticket: int) -> Path:
        folders = self.squad.data.runs.glob(f"ticket-{ticket}-run-*")
        return max(folders, key=lambda folder: int(folder.name.rpartition("-")[2]))


def _fact(run_dir: Path, kind: JournalKind, name: str) -> int:
    """A number from a run's journal."""
    (event,) = [event for event in read_journal(run_dir) if event.kind == kind.value]
    number = event.facts[name]
    assert isinstance(number, int)
    return number


@contextlib.contextmanager
def site(folder: Path) -> Iterator[Site]:
    one = Site(folder)
    try:
        yield one
    finally:
        one.close()
