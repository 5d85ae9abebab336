"""A head on Postgres and machines as processes with folders of their own, each behind a link that can be cut."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from legion.demo.machines.link import BadLink
from legion.system.paths import DataDir
from legion.wire.machine_pages import MachineLine
from legion.wire.machines import InviteMachine
from tests.support.legion import PATIENCE, SOURCE, Squad
from tests.support.looking import until_seen
from tests.support.postgres import fresh_database

LABEL = "far"
"""Every machine has it and the head has not: what asks for it runs on a machine."""
LEASE = 9.0
"""Seconds until the head gives runs away: a tenth of the usual ones."""


class FarMachine:
    """A worker process, and the link that it dials through."""

    def __init__(self, fleet: Fleet, name: str, line: str) -> None:
        self.name = name
        self.folder = fleet.squad.folder / name
        self.folder.mkdir()
        self.data = DataDir(self.folder / "data")
        self.settings = self.folder / "config.toml"
        self.settings.write_text(fleet.machine_settings)
        address, _, secret = line.partition("/#")
        self._head_port = int(address.rpartition(":")[2])
        self.link = BadLink(self._head_port, seed=len(fleet.machines))
        self.line = f"https://127.0.0.1:{self.link.port}/#{secret}"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        file = self.folder / "worker.log"
        return file.read_text() if file.exists() else ""

    def start(self, *before: str) -> FarMachine:
        """`before` comes before the interpreter: `unshare --time` and the like."""
        env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("LEGION_")},
            "PYTHONPATH": str(SOURCE),
            "LEGION_CONFIG": str(self.settings),
        }
        argv = [*before, sys.executable, "-m", "legion", "--data-dir", str(self.data.root), "join", self.line]
        with (self.folder / "worker.log").open("ab") as log:
            self.process = subprocess.Popen(argv, env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        return self

    def kill(self) -> None:
        """kill -9 of the worker; its runs are processes of their own."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(30)

    def end(self) -> int:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)

    def processes(self) -> list[psutil.Process]:
        """Everything alive that names this machine's folder, but for the worker itself."""
        found = []
        for one in psutil.process_iter(["pid", "cmdline"]):
            words = " ".join(one.info["cmdline"] or ())
            worker = self.process is not None and one.pid == self.process.pid
            if str(self.folder) in words and not worker and one.pid != os.getpid():
                found.append(one)
        return found

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait(30)
        for one in self.processes():
            with contextlib.suppress(psutil.Error):
                one.kill()
        self.link.close()


class Fleet:
    def __init__(self, squad: Squad, machine_settings: str) -> None:
        self.squad = squad
        self.machine_settings = machine_settings
        self.machines: dict[str, FarMachine] = {}

    def invite(self, name: str, *, slots: int = 4) -> FarMachine:
        wanted = InviteMachine(name=name, labels=[LABEL], slots=slots, host="127.0.0.1")
        machine = FarMachine(self, name, self.squad.client.invite_machine(wanted).line)
        self.machines[name] = machine
        return machine

    def add(self, name: str, *, slots: int = 4) -> FarMachine:
        """Invited, started, and ready."""
        machine = self.invite(name, slots=slots).start()
        self.until(lambda: name in self.states(), f"{name} joined")
        return machine

    def line_of(self, name: str) -> MachineLine:
        return next(one for one in self.squad.client.machines().machines if one.name == name)

    def states(self) -> dict[str, str]:
        return {one.name: one.state for one in self.squad.client.machines().machines if not one.head}

    def until(self, holds: Callable[[], object], what: str, patience: float = PATIENCE) -> None:
        try:
            until_seen(self.squad, holds, what, patience)
        except AssertionError as never:
            logs = "\n".join(f"{name}:\n{one.log[-2500:]}" for name, one in self.machines.items())
            raise AssertionError(f"{never}\n{logs}") from None

    def close(self) -> None:
        for machine in self.machines.values():
            machine.close()


@contextlib.contextmanager
def fleet(folder: Path, *machines: str, lease: float = LEASE, settings: str = "") -> Iterator[Fleet]:
    """A head with these machines; agents everywhere can write into the folder `gates`."""
    (folder / "gates").mkdir()
    sandbox = f'[sandbox]\nwrite = ["{folder}/gates"]\n'
    with fresh_database() as url:
        head = Squad(folder, settings=settings + sandbox, database=url, daemon=f"machine_lease = {lease}")
        made = Fleet(head, sandbox)
        try:
            head.start()
            for name in machines:
                made.add(name)
            yield made
        finally:
            made.close()
            head.close()
