"""Kill the head or the worker at each step of a run on a machine; start it again; the ticket lands once."""

from __future__ import annotations

import contextlib
import os
import random
import select
import signal
from collections.abc import Iterable, Iterator

import pytest

from legion.system.crash import Point
from legion.wire import errors
from legion.wire.dispatch import Dispatch
from tests.machines.workers import MachineHouse, WorkerProcess, machine_house
from tests.support.gates import Gate
from tests.support.legion import PATIENCE, Project, Squad, new
from tests.support.repository import Repository
from tests.support.sampling import SEED, sampled

HEAD: list[Point] = [
    point for point in Point if point.value.startswith("jobs.machine-") and point is not Point.MACHINE_LATE_AFTER_KEEP
]
"""Late work needs a lease that ended: `test_dial_in` kills at that point."""
WORKER: list[Point] = [point for point in Point if point.value.startswith("machine.")]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MachineHouse]:
    # Long enough for a killed head to be back on a busy machine.
    with machine_house(tmp_path_factory.mktemp("crashes"), lease=60.0) as one:
        yield one


@pytest.fixture(scope="module")
def project(house: MachineHouse) -> Project:
    return house.head.adopt(Repository(house.folder / "ada"))


def has_landed_once(project: Project, ticket: int, title: str) -> None:
    page = project.ticket(ticket)
    assert page.ticket.state == "done", (page, project.squad.log[-3000:])
    assert {run.attempt for run in page.runs} == {1}
    assert project.landed_titles().count(title) == 1


def pairs() -> list[tuple[Point, Point]]:
    """Each point of the head and each of the worker, together with one of the other's: which one, the seed decides."""
    chance = random.Random(SEED)
    heads, workers = chance.sample(HEAD, len(HEAD)), chance.sample(WORKER, len(WORKER))
    count = max(len(heads), len(workers))
    return [(heads[n % len(heads)], workers[n % len(workers)]) for n in range(count)]


def first_dead(pids: Iterable[int]) -> int:
    handles = {os.pidfd_open(pid): pid for pid in pids}
    try:
        dead, _, _ = select.select(list(handles), [], [], PATIENCE)
        assert dead, "each should have died at its point"
        return handles[dead[0]]
    finally:
        for handle in handles:
            os.close(handle)


@pytest.mark.parametrize("points", sampled(pairs(), 2), ids=lambda points: "+".join(point.value for point in points))
def test_a_head_and_a_worker_that_die_at_a_step_continue_there(
    house: MachineHouse, project: Project, points: tuple[Point, Point]
):
    at_head, at_worker = points
    name = f"p{HEAD.index(at_head)}-{WORKER.index(at_worker)}"
    worker = house.worker(name, labels=[name], slots=1, extra={"LEGION_CRASH_AT": at_worker.value})
    assert house.head.end() == 0
    house.head.start({"LEGION_CRASH_AT": at_head.value})
    asked = Dispatch(cwd=project.cwd, tickets=[new(name, f"echo {name} > {name}.txt", on=[name])], request=name)
    with contextlib.suppress(errors.LegionError):
        house.head.client.dispatch(asked)
    assert house.head.process is not None
    assert worker.process is not None
    living: dict[int, Squad | WorkerProcess] = {house.head.process.pid: house.head, worker.process.pid: worker}
    while living:
        dead = living.pop(first_dead(living))
        assert dead.process is not None
        assert dead.process.wait(PATIENCE) == -signal.SIGKILL, dead.log[-3000:]
        dead.start()
        if dead is house.head:
            # Whether its answer came depends on the point, so the person asks again.
            house.head.client.dispatch(asked)
    (ticket,) = house.head.client.dispatch(asked).ids
    project.until_settled(ticket)
    has_landed_once(project, ticket, name)
    worker.close()


def test_a_killed_worker_and_a_killed_head_cost_no_run(house: MachineHouse, project: Project):
    gate = Gate(house.folder / "gates", "survivor")
    worker = house.worker("survivor", labels=["survivor"])
    ticket = project.dispatch("kept", f"echo before && {gate.pause} && echo after > kept.txt", on=["survivor"])
    gate.arrived()
    placed = project.ticket(ticket).placed_because
    worker.kill()
    house.head.kill()
    worker.line = ""
    worker.start()
    house.head.start()
    project.until_true(lambda: bool(project.ticket(ticket).placed_because))
    assert project.ticket(ticket).placed_because == placed, "the first reason stays"
    assert "slots were free" in placed
    gate.open()
    project.until_settled(ticket)
    page = project.ticket(ticket)
    assert (page.ticket.state, len(page.runs)) == ("done", 1), (page.runs, house.head.log[-2000:], worker.log[-2000:])
    assert project.landed("kept.txt") == "after\n"
    assert "before" in project.log(ticket)
    worker.close()
    gate.close()
