"""Faults between head and machines: links that are cut, slow, lossy or one-way, and workers and heads that are killed.

However it breaks, each ticket lands once, and no process is left on a machine that lost its run.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.demo.machines.link_process import CUT, LOSSY, ONLY_DOWN, ONLY_UP, SLOW, LinkState
from tests.machines.fleet import LABEL, Fleet, fleet
from tests.support.gates import Gate
from tests.support.legion import Project, new
from tests.support.sampling import sampled

LATE = "refs/legion/late/"


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with fleet(tmp_path_factory.mktemp("fleet"), "m1") as made:
        yield made


@pytest.fixture(scope="module")
def project(far: Fleet) -> Project:
    return far.adopt()


@pytest.fixture
def gate(far: Fleet, request: pytest.FixtureRequest) -> Iterator[Gate]:
    made = Gate(far.house.folder / "gates", f"gate{abs(hash(request.node.name))}")
    yield made
    made.close()


def assert_landed_once(project: Project, *titles: str) -> None:
    history = project.history()
    assert {title: history.count(title) for title in titles} == dict.fromkeys(titles, 1)


def test_a_run_survives_a_cut_that_is_shorter_than_its_lease(far: Fleet, project: Project, gate: Gate):
    ticket = project.dispatch("Short cut", f"{gate.pause}; echo one > short.txt", on=[LABEL])
    gate.arrived()
    far.links["m1"].cut()
    gate.open()
    far.links["m1"].heal()
    project.until(ticket, "done")
    assert project.landed("short.txt") == "one\n"
    assert len(project.ticket(ticket).runs) == 1
    assert far.given("m1")[-1] == ("ended", "")


@pytest.mark.parametrize("state", sampled([SLOW, LOSSY], 1), ids=["200 ms", "lossy"])
def test_tickets_land_over_a_bad_link(far: Fleet, project: Project, state: LinkState, request: pytest.FixtureRequest):
    name = request.node.callspec.id.replace(" ", "-")
    far.links["m1"].change(state)
    tickets = project.dispatch_all(
        [new(f"{name} {n}", f"seq 20000 > {name}-{n}.txt; seq 3000", on=[LABEL]) for n in range(2)]
    )
    project.until_settled(*tickets)
    far.links["m1"].heal()
    assert {project.state(one) for one in tickets} == {"done"}
    assert_landed_once(project, *(f"{name} {n}" for n in range(2)))
    assert project.landed(f"{name}-1.txt") == "".join(f"{n}\n" for n in range(1, 20001))
    assert project.log(tickets[0]).split()[-1] == "3000"


@pytest.mark.parametrize("state", sampled([CUT, ONLY_UP, ONLY_DOWN], 1), ids=["cut", "only up", "only down"])
def test_a_machine_that_is_cut_off_stops_and_its_run_lands_elsewhere_once(
    far: Fleet, project: Project, gate: Gate, state: LinkState, request: pytest.FixtureRequest
):
    name = request.node.callspec.id.replace(" ", "-")
    far.add(f"{name}-1", labels=["pair", name], slots=1)
    title = f"Moved {name}"
    ticket = project.dispatch(title, f"echo {name} > {name}.txt; {gate.pause}; date > end.txt", on=[name])
    gate.arrived()
    far.house.worker(f"{name}-2", labels=["pair", name], slots=1)
    far.links[f"{name}-1"].change(state)
    # The runner counts the lease itself; only then does another machine get the run.
    far.until(lambda: not far.workers[f"{name}-1"].runners(), "the agent that was cut off ended")
    gate.arrived()
    assert [one for one, _ in far.given(f"{name}-1")] == ["lapsed"]
    gate.open()
    project.until(ticket, "done")
    assert [one for one, _ in far.given(f"{name}-2")] == ["ended"]
    far.links[f"{name}-1"].heal()
    far.until(lambda: f"{LATE}ticket-{ticket}-" in project.hub_git("for-each-ref"), "the late work arrived")
    assert_landed_once(project, title)
    assert not far.runners()
    for one in (f"{name}-1", f"{name}-2"):
        far.head.cli("machine", "remove", one, "--yes", cwd=Path(project.cwd))


def test_a_machine_whose_worker_hangs_stops_by_itself_and_its_tree_arrives_late(
    far: Fleet, project: Project, gate: Gate
):
    """Its runner is alive and counts the lease by itself. A busy host may lose a lease too: that costs no attempt."""
    far.house.worker("hangs", labels=["hangs"], slots=1)
    first = far.workers["hangs"]
    command = (
        f'if test "$LEGION_STATE" = "${{LEGION_STATE#{first.folder}}}"; then echo second > hangs.txt; '
        f"else echo first > hangs.txt; {gate.pause}; echo never > never.txt; fi"
    )
    ticket = project.dispatch("Hangs", command, on=["hangs"])
    gate.arrived()
    far.house.worker("other", labels=["hangs"], slots=1)
    (runner,) = first.runners()
    (frozen,) = first.freeze()
    page = project.until(ticket, "done")
    assert not runner.is_running() or runner.status() == "zombie"
    assert {(run.attempt, run.outcome) for run in page.runs[:-1]} == {(1, "lost")}
    assert (page.runs[-1].attempt, page.runs[-1].outcome) == (1, "finished")
    frozen.resume()

    def arrived() -> set[str]:
        names = project.hub_git("for-each-ref", "--format=%(refname)", LATE).splitlines()
        return {project.hub_git("show", f"{name}:hangs.txt") for name in names if f"ticket-{ticket}-" in name}

    far.until(lambda: "first\n" in arrived(), "the late work arrived")
    assert project.landed("hangs.txt") == "second\n"
    assert project.landed("never.txt") is None
    for one in ("hangs", "other"):
        far.head.cli("machine", "remove", one, "--yes", cwd=Path(project.cwd))


def test_a_run_on_a_machine_that_burns_down_starts_again_from_its_last_snapshot(
    far: Fleet, project: Project, gate: Gate
):
    far.house.worker("burns", labels=["burns"], slots=1)
    command = f"test -f ember.txt && echo two > two.txt || {{ echo ember > ember.txt; {gate.pause}; }}"
    ticket = project.dispatch("Burnt", command, on=["burns"])
    gate.arrived()
    kept = project.hub / "refs" / "legion" / "wip" / str(ticket)
    far.until(lambda: list(kept.glob("*")), "a snapshot")
    far.workers["burns"].close()
    shutil.rmtree(far.workers["burns"].data)
    far.house.worker("stands", labels=["burns"], slots=1)
    page = project.until(ticket, "done")
    assert {(run.attempt, run.outcome) for run in page.runs[:-1]} == {(1, "lost")}
    assert (page.runs[-1].attempt, page.runs[-1].outcome) == (1, "finished")
    assert (project.landed("ember.txt"), project.landed("two.txt")) == ("ember\n", "two\n")
    for one in ("burns", "stands"):
        far.head.cli("machine", "remove", one, "--yes", cwd=Path(project.cwd))


def test_a_removed_machine_is_out_and_its_worker_ends_with_4(far: Fleet, project: Project, gate: Gate):
    far.house.worker("gone", labels=["gone"])
    ticket = project.dispatch("Never", f"{gate.pause}; echo one > never.txt", on=["gone"])
    gate.arrived()
    refused = far.head.cli("machine", "remove", "gone", cwd=Path(project.cwd))
    assert refused.returncode == 5
    done = far.head.cli("machine", "remove", "gone", "--yes", cwd=Path(project.cwd))
    assert done.returncode == 0, done.stderr
    worker = far.workers["gone"]
    assert worker.process is not None
    assert worker.process.wait(60) == 4
    far.until(lambda: not worker.runners(), "its agents ended")
    assert project.state(ticket) != "done"
    project.stop(ticket)
