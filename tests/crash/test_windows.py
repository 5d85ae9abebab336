"""Narrow windows between a promise and its effect, each met on purpose."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from legion.domain.projects import Project
from legion.domain.runs import Run
from legion.domain.tickets.ticket import State, Ticket
from legion.drivers import Program
from legion.runner import launch
from legion.runner.launch import Launcher, LostRun
from legion.runner.sandbox import Sandbox
from legion.runner.spec import RunSpec, write_spec
from legion.store.board import landings, projects, tickets
from legion.store.database.transactions import Store
from legion.store.work import runs
from legion.system.crash import Point
from legion.system.paths import DataDir
from tests.crash import invariants
from tests.crash.board import Ground, prepare
from tests.crash.nursery import Nursery


class Window:
    """One ground, one death, one life after it."""

    def __init__(self, folder: Path, nursery: Nursery) -> None:
        self.nursery = nursery
        self.ground = Ground(folder / "case")
        prepare(self.ground)
        for name in ("arrived", "never"):
            os.mkfifo(self.ground.shared / name)

    def dies(self, how: str) -> None:
        assert self.nursery.live(self.ground, how).was_killed, self.log()

    def goes_on(self, *, early: str = "", late: str = "") -> None:
        (self.ground.folder / "wish.json").write_text(json.dumps({"early": early, "late": late}))
        assert self.nursery.live(self.ground, "go_on").code == 0, self.log()
        invariants.wait_until_gone(invariants.processes_of(self.ground.folder, self.ground.data))

    def log(self) -> str:
        return (self.ground.folder / "daemon.log").read_text()[-12000:]

    def told(self) -> tuple[Project, Ticket, tuple[Run, ...]]:
        store = Store(self.ground.url)
        try:
            with store.read() as tx:
                return projects.get(tx, 1), tickets.get(tx, 1), runs.of_ticket(tx, 1)
        finally:
            store.close()


@pytest.fixture
def window(tmp_path: Path, nursery: Nursery) -> Window:
    return Window(tmp_path, nursery)


def test_an_agent_whose_ticket_was_stopped_is_ended_by_the_next_daemon_and_the_ticket_can_be_taken_up_again(
    window: Window,
):
    window.dies("die_before_the_runner_hears_of_the_stop")
    assert window.told()[1].state is State.STOPPED, "or this test tests nothing"
    window.goes_on()
    _, ticket, (run,) = window.told()
    assert ticket.state is State.STOPPED
    assert run.outcome is not None
    assert run.outcome.value == "stopped"
    assert run.saved is not None, "what it left is kept"
    window.goes_on(late="retry")
    _, ticket, _ = window.told()
    assert ticket.state is State.DONE
    assert len((window.ground.shared / "starts").read_text().splitlines()) == 2


def test_a_ticket_paused_in_a_crash_goes_on_with_the_same_attempt(window: Window):
    window.dies("die_before_the_runner_hears_of_the_pause")
    assert window.told()[1].state is State.PARKED, "or this test tests nothing"
    window.goes_on(late="resume")
    _, ticket, both = window.told()
    assert (ticket.state, ticket.attempt) == (State.DONE, 1)
    assert [run.attempt for run in both] == [1, 1]


def test_a_sandbox_that_was_only_half_built_does_not_outlive_its_runner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("LEGION_CRASH_AT", Point.RUNNER_PROGRAM_AFTER_START.value)
    data = DataDir(tmp_path / "data")
    launcher = Launcher()
    for number in range(10):
        run = data.runs / str(number)
        program = Program(argv=("tail", "-f", "/dev/null"), cwd=tmp_path, env={"PATH": "/usr/bin:/bin"})
        sandbox = Sandbox(home=Path("/home/agent"), writable=(tmp_path / "data/projects",))
        data.prepare()
        write_spec(run, RunSpec(run=run.name, program=program, sandbox=sandbox))
        launcher.start(run)
        assert launch.wait(run) == LostRun()
    launcher.close()
    invariants.wait_until_gone(invariants.processes_of(tmp_path, data))


def test_the_worktree_of_a_dropped_ticket_is_put_away_by_the_next_daemon(window: Window):
    window.dies("die_before_a_dropped_worktree_is_put_away")
    worktree = window.ground.worktrees / "ticket-1"
    assert worktree.is_dir(), "or this test tests nothing"
    assert window.nursery.live(window.ground, "look_again").code == 0, window.log()
    assert not worktree.exists()
    assert list(window.ground.worktrees.rglob(".trash/*-ticket-1/ticket-1-run-1.ignored"))


def test_a_landing_of_the_persons_commits_alone_is_finished_whatever_they_ask_for_first(window: Window):
    window.dies("die_while_the_persons_commits_land")
    window.goes_on(early="collect")
    store = Store(window.ground.url)
    with store.read() as tx:
        project, (landing,) = projects.get(tx, 1), landings.history(tx, 1, 10)
    store.close()
    assert landing.landed
    assert project.target == landing.commit == (window.ground.hub / "refs/legion/target").read_text().strip()
    assert not project.upstream_pending
