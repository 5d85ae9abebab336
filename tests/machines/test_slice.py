"""A ticket on another machine: it runs there in a worktree of that machine, and lands on the head as always."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from legion.domain.machines.machine import LeaseTimes
from tests.machines.workers import MachineHouse, machine_house
from tests.support.gates import Gate
from tests.support.legion import Project
from tests.support.looking import until_seen
from tests.support.repository import Repository


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MachineHouse]:
    # No test here waits for a lease to end, and with a short one a busy host would lose its runs.
    with machine_house(tmp_path_factory.mktemp("machines"), lease=LeaseTimes.reap) as one:
        yield one


@pytest.fixture(scope="module")
def project(house: MachineHouse) -> Project:
    return house.head.adopt(Repository(house.folder / "ada"))


@pytest.fixture(autouse=True)
def machines_of_one_test(house: MachineHouse) -> Iterator[None]:
    """Machines that wait for the next test would ask the head for jobs after each of its commits."""
    yield
    house.close()


@pytest.fixture
def gate(house: MachineHouse, request: pytest.FixtureRequest) -> Iterator[Gate]:
    gate = Gate(house.folder / "gates", request.node.name[:40])
    yield gate
    gate.close()


def test_a_ticket_runs_on_a_machine_and_lands_on_the_head(house: MachineHouse, project: Project):
    desk = house.worker("desk", labels=["gpu"])
    assert house.head.client.machines().reachable.startswith("https://127.0.0.1:")
    command = "pwd > where.txt && echo made-here && echo hidden > made.txt"
    ticket = project.dispatch("made elsewhere", command, on=["gpu"])
    project.until_settled(ticket)
    page = project.ticket(ticket)
    assert page.ticket.state == "done", (page.ticket, house.head.log[-3000:], desk.log[-3000:])
    assert project.landed("made.txt") == "hidden\n"
    assert project.landed("where.txt") == f"{desk.data}/worktrees/1/ticket-{ticket}\n"
    assert "made-here" in project.log(ticket)


def test_a_killed_runner_starts_the_same_attempt_again_with_what_it_left(
    house: MachineHouse, project: Project, gate: Gate
):
    worker = house.worker("runner", labels=["runner"])
    command = f"test -f half.txt && echo whole > whole.txt || {{ echo half > half.txt; {gate.pause}; }}"
    ticket = project.dispatch("again", command, on=["runner"])
    gate.arrived()
    for runner in worker.runners():
        runner.kill()
    project.until_settled(ticket)
    page = project.ticket(ticket)
    assert page.ticket.state == "done", (page.ticket, house.head.log[-2000:], worker.log[-2000:])
    assert [(run.attempt, run.outcome) for run in page.runs] == [(1, "lost"), (1, "finished")]
    assert project.landed("half.txt") == "half\n"
    assert project.landed("whole.txt") == "whole\n"


def test_a_check_runs_on_a_machine_with_its_label_and_the_toolchain_of_the_head(house: MachineHouse):
    house.worker("checker", labels=["checks"], slots=1)
    passes = '[checks.there]\nrun = "pwd | grep /checker/"\non = ["checks"]\n'
    here = house.head.client.machines().machines[0].name
    shop = house.head.adopt(Repository(house.folder / "checked", passes))
    ticket = shop.dispatch("proven there", "echo one > one.txt", on=[here])
    shop.until_settled(ticket)
    page = shop.ticket(ticket)
    assert page.ticket.state == "done", (page, house.head.log[-2000:], house.workers["checker"].log[-2000:])
    assert [(one.name, one.verdict, one.machine) for one in page.receipts] == [("there", "green", "checker")]
    assert "machine checker" in house.head.cli("ticket", str(ticket), cwd=shop.repository.root).stdout
    other = passes + 'toolchain = "of-another-host"\n'
    strict = house.head.adopt(Repository(house.folder / "strict", other))
    waits = strict.dispatch("waits", "echo one > one.txt", on=[here])
    needs = "it needs the toolchain of-another-host, but checker has "
    until_seen(house.head, lambda: needs in strict.ticket(waits).ticket.doing, "the reason on the ticket")
    strict.stop(waits)


def test_the_next_attempt_on_another_machine_starts_with_the_files_of_the_last(
    house: MachineHouse, project: Project, gate: Gate
):
    first = house.worker("red", labels=["moves"], slots=1)
    command = (
        f"if test -f carried.txt; then echo fixed > carried.txt; pwd > second.txt; "
        f"else echo BROKEN > carried.txt; pwd > first.txt; {gate.pause}; fi"
    )
    ticket = project.dispatch("moves on", command, on=["moves"])
    gate.arrived()
    house.head.client.pause_machine("red")
    house.worker("green", labels=["moves"], slots=1)
    gate.open()
    project.until_settled(ticket)
    page = project.ticket(ticket)
    assert page.ticket.state == "done", (page, house.head.log[-2000:], first.log[-2000:])
    assert [(run.attempt, run.outcome) for run in page.runs] == [(1, "finished"), (2, "finished")]
    assert project.landed("carried.txt") == "fixed\n"
    places = {project.landed(name) for name in ("first.txt", "second.txt")}
    assert places == {f"{house.folder}/{name}/data/worktrees/1/ticket-{ticket}\n" for name in ("red", "green")}


def test_an_updated_worker_keeps_its_run_and_its_place_at_its_supervisor(
    house: MachineHouse, project: Project, gate: Gate
):
    worker = house.worker("updated", labels=["updated"])
    assert worker.process is not None
    before, starts = worker.process.pid, worker.log.count("works for")
    ticket = project.dispatch("Update", f"{gate.pause}; echo one > update.txt", on=["updated"])
    gate.arrived()
    assert house.head.cli("machine", "update", "updated", cwd=project.repository.root).returncode == 0
    until_seen(house.head, lambda: worker.log.count("works for") == starts + 1, "the worker started again")
    gate.open()
    project.until(ticket, "done")
    assert (worker.process.pid, worker.process.poll()) == (before, None)
    assert len(project.ticket(ticket).runs) == 1
    assert project.history().count("Update") == 1
