"""A ticket on another machine: it runs there in a worktree of that machine, and lands on the head as always."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.machines.workers import MachineHouse, machine_house
from tests.support.gates import Gate
from tests.support.legion import Project
from tests.support.looking import until_seen
from tests.support.repository import Repository


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MachineHouse]:
    with machine_house(tmp_path_factory.mktemp("machines")) as one:
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


def test_a_silent_machine_stops_by_itself_and_its_run_goes_elsewhere_and_its_tree_arrives_late(
    house: MachineHouse, project: Project, gate: Gate
):
    """The worker hangs; its runner is alive and counts the lease by itself."""
    first = house.worker("cut-off", labels=["pair"], slots=1)
    command = (
        f'if test "$LEGION_STATE" = "${{LEGION_STATE#{first.folder}}}"; then echo second > made.txt; '
        f"else echo first > made.txt; {gate.pause}; echo never > never.txt; fi"
    )
    ticket = project.dispatch("moved", command, on=["pair"])
    gate.arrived()
    second = house.worker("other", labels=["pair"], slots=1)
    (runner,) = first.runners()
    (frozen,) = first.freeze()
    project.until_settled(ticket)
    assert not runner.is_running() or runner.status() == "zombie"
    page = project.ticket(ticket)
    logs = (page, house.head.log[-2000:], first.log[-1500:], second.log[-1500:])
    assert page.ticket.state == "done", logs
    assert [(run.attempt, run.outcome) for run in page.runs] == [(1, "lost"), (1, "finished")], logs
    assert project.landed("made.txt") == "second\n"
    frozen.resume()
    project.until_true(lambda: "refs/legion/late/" in project.hub_git("for-each-ref", "--format=%(refname)"))
    (late,) = [
        name
        for name in project.hub_git("for-each-ref", "--format=%(refname)", "refs/legion/late").splitlines()
        if f"ticket-{ticket}-" in name
    ]
    assert project.hub_git("show", f"{late}:made.txt") == "first\n"
    assert project.landed("made.txt") == "second\n"
    assert project.landed("never.txt") is None


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


def test_a_run_on_a_machine_that_burns_down_starts_again_from_its_last_snapshot(
    house: MachineHouse, project: Project, gate: Gate
):
    first = house.worker("burns", labels=["burns"], slots=1)
    command = f"test -f ember.txt && echo two > two.txt || {{ echo ember > ember.txt; {gate.pause}; }}"
    ticket = project.dispatch("burnt", command, on=["burns"])
    gate.arrived()
    kept = project.hub / "refs" / "legion" / "wip" / str(ticket)
    until_seen(house.head, lambda: list(kept.glob("*")), "a snapshot")
    first.close()
    shutil.rmtree(first.data)
    house.worker("stands", labels=["burns"], slots=1)
    project.until_settled(ticket)
    page = project.ticket(ticket)
    assert page.ticket.state == "done", (page, house.head.log[-2000:])
    assert [(run.attempt, run.outcome) for run in page.runs] == [(1, "lost"), (1, "finished")]
    assert project.landed("ember.txt") == "ember\n"
    assert project.landed("two.txt") == "two\n"


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
