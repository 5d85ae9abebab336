"""A head on Postgres, and real worker processes with data folders of their own that dial in to it over TLS."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import psutil

from legion.runner import launch
from legion.wire.machines import InviteMachine
from tests.support.legion import SOURCE, Squad, processes_of
from tests.support.looking import until_seen
from tests.support.migrated import migrated_database
from tests.support.settings import without_trial
from tests.support.warm import Forked, warm

LEASE = 9.0
"""Seconds until a silent machine's runs are given away; it stops them itself after six."""


class WorkerProcess:
    """`legion machine join` on another host: the process can be killed, stopped and started again; its folder stays."""

    def __init__(
        self,
        folder: Path,
        line: str = "",
        *,
        settings: str = "",
        host: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
    ) -> None:
        """`host` are words for `tests.machines.host`: with them it is a host of its own. `env` is set at each start."""
        self.folder = folder
        self.host = host
        self.data = folder / "data"
        self.line = line
        folder.mkdir(parents=True, exist_ok=True)
        self.settings = folder / "config.toml"
        self.settings.write_text(without_trial(settings))
        self.log_file = folder / "worker.log"
        self.env = env or {}
        self.process: subprocess.Popen[bytes] | Forked | None = None

    def start(self, extra: Mapping[str, str] | None = None) -> WorkerProcess:
        env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("LEGION_")},
            "PYTHONPATH": str(SOURCE),
            "LEGION_CONFIG": str(self.settings),
            **self.env,
            **(extra or {}),
        }
        words = ["--data-dir", str(self.data), *([self.line] if self.line else [])]
        module = "tests.machines.host" if self.host else "legion.machine"
        with self.log_file.open("ab") as log:
            if (source := warm(SOURCE)).fits(env):
                handles = {1: log.fileno(), 2: log.fileno()}
                self.process = source.start(module, [*self.host, *words], env, Path.cwd(), handles)
            else:
                argv = [sys.executable, "-m", module, *self.host, *words]
                self.process = subprocess.Popen(argv, env=env, stdout=log, stderr=log)
        return self

    @property
    def log(self) -> str:
        return self.log_file.read_text() if self.log_file.exists() else ""

    @property
    def has_joined(self) -> bool:
        return (self.data / "machine.json").exists()

    @property
    def has_ended(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def end(self) -> int:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)

    def until_dead(self, patience: float = 60.0) -> None:
        """Wait until it died at the crash point that it was started with."""
        assert self.process is not None
        assert self.process.wait(patience) == -signal.SIGKILL, self.log[-2000:]

    def freeze(self, *, all_processes: bool = False) -> list[psutil.Process]:
        """SIGSTOP, as a machine that hangs: the worker alone, or with its runners and agents."""
        frozen = [one for one in self.processes() if all_processes or one.pid == getattr(self.process, "pid", 0)]
        for one in frozen:
            with contextlib.suppress(psutil.Error):
                one.suspend()
        return frozen

    def processes(self) -> list[psutil.Process]:
        """The worker, its runners, their sandboxes and agents."""
        return processes_of(self.folder)

    def runners(self) -> list[psutil.Process]:
        """Runners hold the lock of their run's folder."""
        held = {str(lock) for lock in self.data.glob("runs/*/lock") if _is_held(lock.parent)}
        pids = (pid for pid in psutil.pids() if held and held & _open_files(pid))
        found = []
        for pid in pids:
            with contextlib.suppress(psutil.NoSuchProcess):
                found.append(psutil.Process(pid))
        return [one for one in found if one.pid != getattr(self.process, "pid", 0)]

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()
        for one in (*self.runners(), *self.processes()):
            with contextlib.suppress(psutil.Error):
                one.kill()


def _is_held(run: Path) -> bool:
    """Asked first, since it costs much less than a look at the files of every process."""
    with contextlib.suppress(FileNotFoundError):
        return launch.is_held(run)
    return False


def _open_files(pid: int) -> set[str]:
    """Read by hand: psutil asks for much more of each file."""
    found = set()
    with contextlib.suppress(OSError):
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                found.add(str(entry.readlink()))
    return found


class MachineHouse:
    """One head and its machines, for a test module."""

    def __init__(self, folder: Path, head: Squad) -> None:
        self.folder = folder
        self.head = head
        self.workers: dict[str, WorkerProcess] = {}
        self._is_open = False

    def invite(self, name: str, *, labels: Sequence[str] = (), slots: int = 4, host: str = "127.0.0.1") -> str:
        # A port of its own: heads of other tests take the first free one while this head is down.
        port = 0 if self._is_open else 24_000 + os.getpid() % 1000 * 8
        self._is_open = True
        wanted = InviteMachine(name=name, labels=list(labels), slots=slots, host=host, port=port)
        return self.head.client.invite_machine(wanted).line

    def worker(
        self, name: str, *, labels: Sequence[str] = (), slots: int = 4, extra: Mapping[str, str] | None = None
    ) -> WorkerProcess:
        """A new machine that has joined."""
        return self.join(name, self.invite(name, labels=labels, slots=slots), extra)

    def join(
        self,
        name: str,
        line: str,
        extra: Mapping[str, str] | None = None,
        *,
        host: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
    ) -> WorkerProcess:
        """A worker that has joined with this line. `extra` is for its first start, `env` for all."""
        gates = self.folder / "gates"
        settings = f'[sandbox]\nwrite = ["{gates}"]\n'
        made = WorkerProcess(self.folder / name, line, settings=settings, host=host, env=env)
        self.workers[name] = made.start(extra)
        until_seen(self.head, lambda: made.has_joined or made.has_ended, f"machine {name}")
        assert (made.data / "machine.json").exists(), made.log[-3000:]
        return made

    def close(self) -> None:
        """End all machines."""
        for worker in self.workers.values():
            worker.close()
        self.workers.clear()


@contextlib.contextmanager
def machine_house(
    folder: Path, *, lease: float = LEASE, database: str = "", launch: Sequence[str] = ()
) -> Iterator[MachineHouse]:
    """`database`: the URL of a server of the test's own; without one, a database of the tests' server."""
    (folder / "gates").mkdir(parents=True)
    settings = f'[sandbox]\nwrite = ["{folder}/gates"]\n'
    with contextlib.nullcontext(database) if database else migrated_database() as url:
        head = _head(folder / "head", settings, url, lease, launch)
        house = MachineHouse(folder, head)
        try:
            head.start()
            yield house
        finally:
            house.close()
            head.close()


def _head(folder: Path, settings: str, url: str, lease: float, launch: Sequence[str]) -> Squad:
    folder.mkdir()
    # The section of the database is written by Squad, so the lease is added to it.
    head = Squad(folder, settings=settings, database=url, launch=launch)
    head.settings.write_text(f"{head.settings.read_text()}machine_lease = {lease}\n")
    return head
