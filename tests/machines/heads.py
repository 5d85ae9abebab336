"""A head that machines dial in to over real TLS, without a daemon: a board, and a queue that is empty."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from legion import __version__
from legion.daemon.machine_server import MachineListener
from legion.domain.machines.machine import PROTOCOL, PlacedRun, PlacementState
from legion.domain.runs import Run
from legion.domain.tickets.ticket import Ticket
from legion.jobs.context import Context
from legion.jobs.machine_runs import placements
from legion.jobs.machines.engine import PlacedJob, RunKey
from legion.jobs.machines.part import MachinePart
from legion.jobs.machines.postgres_queue import PostgresQueue
from legion.jobs.machines.travel import MachineJob
from legion.jobs.run import job
from legion.jobs.trees import ProjectContext
from legion.machine.link import HeadLink
from legion.machine.membership import Membership, join
from legion.service.machines.dial_in import DialIn
from legion.store.work import machines, runs
from legion.system import crash
from legion.system.crash import Point
from legion.wire.machines import MachineBeat
from tests.support.board import Board


def job_of(context: Context, project: ProjectContext, ticket: Ticket, run: Run) -> MachineJob:
    """A builder's run, as it travels."""
    described = job.agent_run(context, project, ticket, run, wanted=lambda: True)
    return placements.job_of(context, project, run, described.place(), described.prepared(None))


class Head:
    """A board whose machines can dial in."""

    def __init__(self, folder: Path, machine_part: MachinePart | None = None, url: str = "") -> None:
        """`url`: where the daemon's own API would be."""
        self.folder = folder
        self.board = Board(folder)
        machine_part = machine_part or self.board.context.machines
        self.board.context = replace(self.board.context, machines=machine_part, url=url)
        self.listener = MachineListener(self.board.data, DialIn(self.board.context))
        self.url = self.listener.open("127.0.0.1", 0)
        self._links: list[HeadLink] = []

    def line(self, name: str, seconds: float = 60.0) -> str:
        with self.board.store.write() as tx:
            code = machines.invite(tx, name=name, labels=(), slots=2, seconds=seconds)
        return f"{self.url}/#{code}/{self.listener.fingerprint}"

    def machine(self, name: str) -> Membership:
        root = self.folder / f"machine-{name}"
        root.mkdir()
        return join(root, self.line(name))

    def link(self, machine: Membership | str) -> HeadLink:
        """The client of a machine, or of a new one of this name."""
        link = (self.machine(machine) if isinstance(machine, str) else machine).link()
        self._links.append(link)
        return link

    def started(self, ticket: int, machine: str) -> Run:
        """A run that is to be placed there."""
        self.board.put(ticket, state="working", command="true")
        with self.board.store.write() as tx:
            return runs.start(tx, ticket, 1, machine=machine)

    def place(self, run: Run) -> None:
        context = self.board.context
        project, made = context.project(1), self.board.tickets[run.ticket or 0]
        assert placements.place(context, run, lambda: job_of(context, project, made, run)) is not None

    def placed(self, run: Run) -> PlacedRun:
        with self.board.store.read() as tx:
            found = machines.placed(tx, run.id)
        assert found is not None
        return found

    def taken(self, ticket: int, machine: str) -> Run:
        """A run that this machine has taken."""
        run = self.started(ticket, machine)
        self.place(run)
        with self.board.store.write() as tx:
            machines.move(tx, run.id, PlacementState.TAKEN)
        return run

    def close(self) -> None:
        for link in self._links:
            link.close()
        self.listener.stop()
        self.board.close()


class EmptyEngine(PostgresQueue):
    """Has no jobs, and records how many a machine was offered."""

    def __init__(self) -> None:
        self.rooms: list[int] = []
        self.placed = threading.Event()

    def place(self, job: PlacedJob, *, taken: bool = False) -> None:
        self.placed.set()

    def finish(self, run: str, generation: int) -> None:
        pass

    def take(self, machine: str, most: int, *, running: Collection[RunKey] = ()) -> Sequence[PlacedJob]:
        self.rooms.append(most)
        return ()


def beat(protocol: int = PROTOCOL, wait: float = 0.0) -> dict[str, object]:
    return asdict(MachineBeat(boot="b", version=__version__, protocol=protocol, wait=wait))


def killed_at(point: Point, work: Callable[[], None]) -> bool:
    """Whether a copy of this process that does the work dies at the point."""
    copy = os.fork()
    if copy == 0:
        try:
            crash.arm(point)
            work()
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]) == -signal.SIGKILL
