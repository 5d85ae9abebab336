"""A small workbench for tests of runs: a worktree, run folders, pipes to hear from programs, and bounded waiting."""

from __future__ import annotations

import concurrent.futures
import os
import select
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import psutil

from legion.drivers import Program
from legion.runner import control, launch
from legion.runner.journal import JournalKind, read_journal
from legion.runner.launch import EndedRun, Launcher, LivingRun, LostRun
from legion.runner.sandbox import Sandbox
from legion.runner.spec import RunResult, RunSpec, write_spec

T = TypeVar("T")

DEADLINE = 30.0
ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
# Two processes that wait for ever, and do not notice on their own that nobody reads what they print.
FAMILY = "(read line < never) & echo go > ready; read line < never"


def within(work: Callable[[], T], seconds: float = DEADLINE) -> T:
    """The result of a blocking call, or a failure if it takes too long."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result(seconds)


class Pipe:
    """A named pipe in the worktree: programs write to it, tests wait for what they write."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        # Open for both, so that it never ends while programs come and go.
        self._handle = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)

    def line(self) -> str:
        content = b""
        while not content.endswith(b"\n"):
            ready, _, _ = select.select([self._handle], [], [], DEADLINE)
            assert ready, f"nothing was written in {DEADLINE} s after {content!r}"
            content += os.read(self._handle, 1)
        return content.decode().rstrip("\n")

    def close(self) -> None:
        os.close(self._handle)


@dataclass
class Workbench:
    root: Path
    sandboxed: bool = True
    shared: Launcher | None = None
    """A launcher of several workbenches; without one, it has one of its own."""
    pipes: list[Pipe] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.worktree.mkdir(parents=True)
        self.launcher = self.shared or Launcher()

    @property
    def worktree(self) -> Path:
        return self.root / "worktree"

    def prepare(self, argv: Sequence[str], **changes: Any) -> Path:
        """A run's folder with its spec, not started."""
        run_dir = self.root / "runs" / str(len(self.folders))
        sandbox = Sandbox(home=Path("/home/ada"), writable=(self.worktree,)) if self.sandboxed else None
        program = Program(argv=tuple(argv), cwd=self.worktree, env=ENV)
        facts: dict[str, Any] = {"run": run_dir.name, "program": program, "sandbox": sandbox, **changes}
        write_spec(run_dir, RunSpec(**facts))
        self.folders.append(run_dir)
        return run_dir

    def start(self, argv: Sequence[str], **changes: Any) -> Path:
        run_dir = self.prepare(argv, **changes)
        self.launcher.start(run_dir)
        return run_dir

    def shell(self, script: str, **changes: Any) -> Path:
        return self.start(["sh", "-c", script], **changes)

    def result(self, run_dir: Path) -> RunResult:
        state = self.wait(run_dir)
        assert isinstance(state, EndedRun), state
        return state.result

    def wait(self, run_dir: Path) -> EndedRun | LostRun:
        return within(lambda: launch.wait(run_dir))

    def pipe(self, name: str) -> Pipe:
        self.pipes.append(Pipe(self.worktree / name))
        return self.pipes[-1]

    def output(self, run_dir: Path) -> str:
        return (run_dir / "output.log").read_text()

    def close(self) -> None:
        for run_dir in self.folders:
            if isinstance(launch.settle(run_dir), LivingRun):
                launch.stop(run_dir, 0)
                self.wait(run_dir)
        if self.shared is None:
            self.launcher.close()
        for pipe in self.pipes:
            pipe.close()


def fact(run_dir: Path, kind: JournalKind, name: str) -> int:
    """A number from the run's journal."""
    (event,) = [event for event in read_journal(run_dir) if event.kind == kind.value]
    number = event.facts[name]
    assert isinstance(number, int)
    return number


def until(run_dir: Path, kind: JournalKind) -> None:
    """Return when the run's journal has this event."""
    with control.connect(run_dir, DEADLINE) as connection:
        control.send(connection, "follow")
        while kind.value not in [event.kind for event in read_journal(run_dir)]:
            assert connection.recv(4096), f"the run ended without {kind}"


def runner_of(run_dir: Path) -> psutil.Process:
    return psutil.Process(fact(run_dir, JournalKind.OPENED, "runner"))


def program_of(run_dir: Path) -> psutil.Process:
    """The process that signals go to; inside a sandbox the first of its pid namespace."""
    until(run_dir, JournalKind.STARTED)
    return psutil.Process(fact(run_dir, JournalKind.STARTED, "pid"))


def fork_server() -> psutil.Process:
    (server,) = [child for child in psutil.Process().children() if "legion.runner.forkserver" in child.cmdline()]
    return server


def assert_gone(processes: Sequence[psutil.Process]) -> None:
    """Each process ends within the deadline."""
    for process in processes:
        try:
            handle = os.pidfd_open(process.pid)
        except ProcessLookupError:
            continue
        try:
            ready, _, _ = select.select([handle], [], [], DEADLINE)
            assert ready, f"{process} still lives"
        finally:
            os.close(handle)


def python(*words: str) -> list[str]:
    return [sys.executable, *words]


def counting(bench: Workbench, then: str = "") -> Path:
    """A run that leaves one line in the worktree each time its program starts."""
    return bench.prepare(["sh", "-c", f"echo started >> starts; {then}"])


def starts(bench: Workbench) -> int:
    path = bench.worktree / "starts"
    return len(path.read_text().splitlines()) if path.exists() else 0
