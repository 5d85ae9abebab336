"""Kill the head or the worker at each step of a run on a machine; start it again; the ticket lands once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from legion.system.crash import Point
from legion.wire import errors
from legion.wire.dispatch import Dispatch
from tests.machines.workers import MachineHouse, machine_house
from tests.support.gates import Gate
from tests.support.legion import Project, new
from tests.support.repository import Repository
from tests.support.sampling import sampled

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


@pytest.mark.parametrize("point", sampled(HEAD, 2), ids=lambda point: point.value)
def test_a_head_that_dies_at_a_step_takes_the_run_up_again(house: MachineHouse, project: Project, point: Point):
    name = f"h{HEAD.index(point)}"
    house.worker(name, labels=[name], slots=1)
    assert house.head.end() == 0
    house.head.start({"LEGION_CRASH_AT": point.value})
    title = f"head {name}"
    asked = Dispatch(cwd=project.cwd, tickets=[new(title, f"echo {name} > {name}.txt", on=[name])], request=title)
    with contextlib.suppress(errors.LegionError):
        house.head.client.dispatch(asked)
    assert house.head.process is not None
    house.head.process.wait(60)
    house.head.start()
    (ticket,) = house.head.client.dispatch(asked).ids
    project.until_settled(ticket)
    has_landed_once(project, ticket, title)
    house.workers[name].close()


@pytest.mark.parametrize("point", sampled(WORKER, 2), ids=lambda point: point.value)
def test_a_worker_that_dies_at_a_step_continues_there(house: MachineHouse, project: Project, point: Point):
    name = f"w{WORKER.index(point)}"
    worker = house.worker(name, labels=[name], slots=1, extra={"LEGION_CRASH_AT": point.value})
    title = f"worker {name}"
    ticket = project.dispatch(title, f"echo {name} > {name}.txt", on=[name])
    worker.until_dead()
    worker.start()
    project.until_settled(ticket)
    has_landed_once(project, ticket, title)
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
