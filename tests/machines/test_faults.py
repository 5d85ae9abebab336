"""Faults between head and machines: links that are cut, slow, lossy or one-way, and killed workers and heads.

However it breaks, each ticket lands once, and no process is left on a machine that lost its run.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.demo.machines.link_state import LOSSY, ONLY_DOWN, ONLY_UP, SLOW, LinkState
from tests.machines.fleet import LABEL, LEASE, FarMachine, Fleet, fleet
from tests.support.gates import Gate
from tests.support.legion import Project, new
from tests.support.repository import CHECK, Repository
from tests.support.sampling import SEED


@pytest.fixture
def far(tmp_path: Path) -> Iterator[Fleet]:
    with fleet(tmp_path, "m1") as made:
        yield made


@pytest.fixture
def project(far: Fleet, tmp_path: Path) -> Project:
    return far.squad.adopt(Repository(tmp_path / "shop", CHECK))


@pytest.fixture
def gate(far: Fleet, tmp_path: Path) -> Iterator[Gate]:
    made = Gate(tmp_path / "gates", "gate")
    yield made
    made.close()


def machine_of(far: Fleet, project: Project, ticket: int) -> FarMachine:
    """Of the newest run."""
    return far.machines[project.ticket(ticket).runs[-1].machine]


def log_of(far: Fleet, name: str) -> list[tuple[str, str]]:
    return [(one.state, one.why) for one in far.squad.client.machine_log(name).runs]


def assert_landed_once(project: Project, *titles: str) -> None:
    history = project.history()
    assert {title: history.count(title) for title in titles} == dict.fromkeys(titles, 1)


def test_a_run_survives_a_cut_that_is_shorter_than_its_lease(far: Fleet, project: Project, gate: Gate):
    ticket = project.dispatch("One", f"{gate.pause}; echo one > one.txt", on=[LABEL])
    gate.arrived()
    machine = far.machines["m1"]
    heard = far.line_of("m1").heard_at
    machine.link.cut()
    gate.open()
    machine.link.heal()
    project.until(ticket, "done")
    assert project.landed("one.txt") == "one\n"
    assert len(project.ticket(ticket).runs) == 1
    assert far.line_of("m1").heard_at != heard
    assert log_of(far, "m1") == [("ended", "")]


@pytest.mark.parametrize("fault", ["cut", "only up", "only down"])
def test_a_machine_that_is_cut_off_stops_and_its_run_lands_elsewhere_once(
    far: Fleet, project: Project, gate: Gate, fault: str
):
    states = {"cut": None, "only up": ONLY_UP, "only down": ONLY_DOWN}
    ticket = project.dispatch("One", f"echo early > early.txt; {gate.pause}; echo one > one.txt", on=[LABEL])
    gate.arrived()
    lost = far.machines["m1"]
    state: LinkState | None = states[fault]
    if state is None:
        lost.link.cut()
    else:
        lost.link.change(state)
    far.until(lambda: not agents(lost), "the agent of m1 ended by itself")
    far.add("m2")
    gate.arrived()
    far.until(lambda: log_of(far, "m1") and log_of(far, "m1")[0][0] == "lapsed", "m1 lost its run")
    gate.open()
    project.until(ticket, "done")
    assert machine_of(far, project, ticket).name == "m2"
    lost.link.heal()
    far.until(lambda: far.states()["m1"] == "open", "m1 is back")
    far.until(lambda: "late/" in project.hub_git("for-each-ref"), "the late work of m1 is in the hub")
    assert_landed_once(project, "One")
    far.until(lambda: not agents(lost), "no process of the lost run is alive")


def agents(machine: FarMachine) -> list[object]:
    """Processes of runs: the shell of the agent, its sandbox, its runner."""
    runs = str(machine.data.runs)
    found: list[object] = []
    for one in machine.processes():
        words = " ".join(one.info["cmdline"] or ())
        if runs in words or "gates" in words:
            found.append(one)
    return found


@pytest.mark.parametrize("state", [SLOW, LOSSY], ids=["200 ms", "lossy"])
def test_tickets_land_over_a_bad_link(far: Fleet, project: Project, state: LinkState):
    far.machines["m1"].link.change(state)
    tickets = project.dispatch_all([new(f"Ticket {n}", f"seq 20000 > {n}.txt", on=[LABEL]) for n in range(3)])
    project.until_settled(*tickets)
    assert {project.state(one) for one in tickets} == {"done"}
    assert_landed_once(project, "Ticket 0", "Ticket 1", "Ticket 2")
    assert project.landed("2.txt") == "".join(f"{n}\n" for n in range(1, 20001))


def test_a_worker_that_is_killed_finds_its_run_again(far: Fleet, project: Project, gate: Gate):
    ticket = project.dispatch("One", f"{gate.pause}; echo one > one.txt", on=[LABEL])
    gate.arrived()
    machine = far.machines["m1"]
    machine.kill()
    gate.open()
    machine.start()
    project.until(ticket, "done")
    assert len(project.ticket(ticket).runs) == 1
    assert_landed_once(project, "One")


def test_a_head_that_is_killed_gives_no_run_away_and_takes_its_result(far: Fleet, project: Project, gate: Gate):
    ticket = project.dispatch("One", f"{gate.pause}; echo one > one.txt", on=[LABEL])
    gate.arrived()
    far.squad.kill()
    gate.open()
    far.squad.start()
    project.until(ticket, "done")
    assert len(project.ticket(ticket).runs) == 1
    assert_landed_once(project, "One")


def test_a_removed_machine_is_out_and_ends_with_4(far: Fleet, project: Project, gate: Gate):
    ticket = project.dispatch("One", f"{gate.pause}; echo one > one.txt", on=[LABEL])
    gate.arrived()
    machine = far.machines["m1"]
    done = far.squad.cli("machine", "remove", "m1", "--yes", cwd=Path(project.cwd))
    assert done.returncode == 0, done.stderr
    assert machine.process is not None
    assert machine.process.wait(60) == 4
    far.until(lambda: not agents(machine), "its agents ended")
    assert project.state(ticket) != "done"
    gate.open()


def test_an_updated_worker_keeps_its_run(far: Fleet, project: Project, gate: Gate):
    ticket = project.dispatch("One", f"{gate.pause}; echo one > one.txt", on=[LABEL])
    gate.arrived()
    machine = far.machines["m1"]
    far.squad.client.update_machine("m1")
    far.until(lambda: machine.log.count("works for") == 2, "the worker started again")
    gate.open()
    project.until(ticket, "done")
    assert machine.process is not None
    assert machine.process.poll() is None, "the same process, as a supervisor sees it"
    assert len(project.ticket(ticket).runs) == 1


@pytest.mark.parametrize("count", [6, pytest.param(200, marks=pytest.mark.soak)], ids=str)
def test_tickets_end_as_on_one_machine_whatever_breaks(tmp_path: Path, count: int):
    """Nothing lost, nothing twice, no orphan process."""
    chance = random.Random(SEED)
    with fleet(tmp_path, "m1", "m2", "m3") as far:
        project = far.squad.adopt(Repository(tmp_path / "shop", CHECK))
        tickets = project.dispatch_all(
            [new(f"Ticket {n}", f"sleep 0.2; echo {n} > {n}.txt", on=[LABEL]) for n in range(count)]
        )
        for _ in range(max(3, count // 10)):
            break_something(far, chance)
            project.squad.client.wait(project.cwd, tickets, after_event=0, timeout=1)
        for machine in far.machines.values():
            machine.link.heal()
        project.until_settled(*tickets, patience=90 + 3 * count)
        assert {project.state(one) for one in tickets} == {"done"}
        assert_landed_once(project, *(f"Ticket {n}" for n in range(count)))
        assert all(project.landed(f"{n}.txt") == f"{n}\n" for n in range(count))
        far.until(lambda: not any(agents(one) for one in far.machines.values()), "no process is left", LEASE * 4)


def break_something(far: Fleet, chance: random.Random) -> None:
    machine = chance.choice(list(far.machines.values()))
    match chance.randrange(6):
        case 0:
            machine.link.cut()
        case 1:
            machine.link.change(chance.choice([SLOW, LOSSY, ONLY_UP, ONLY_DOWN]))
        case 2:
            machine.link.heal()
        case 3:
            machine.link.break_connections()
        case 4:
            machine.kill()
            machine.start()
        case _:
            far.squad.kill()
            far.squad.start()
