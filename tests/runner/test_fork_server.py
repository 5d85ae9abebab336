"""The fork server may be killed, stopped or be gone: runs live on, and the launcher starts another."""

from __future__ import annotations

import concurrent.futures
import os
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

import legion
from legion.runner import launch
from legion.runner.launch import LivingRun, LostRun
from tests.runner.runs import (
    DEADLINE,
    FAMILY,
    Workbench,
    assert_gone,
    counting,
    fork_server,
    program_of,
    python,
    runner_of,
    starts,
)

WARM = """
import signal, sys
from legion.runner.launch import Launcher
launcher = Launcher()
launcher.warm()
sys.stdout.write("warm\\n")
sys.stdout.flush()
signal.pause()
"""


@pytest.fixture(scope="module")
def launcher() -> None:
    """Each workbench has its own fork server: tests here kill it."""


def test_a_program_can_be_interrupted_though_whoever_started_legion_ignores_that(bench: Workbench):
    """As the background job of a shell does."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        run = bench.shell("kill -INT $$; exit 3")
    finally:
        signal.signal(signal.SIGINT, before)
    assert bench.result(run).exit_code == 128 + signal.SIGINT


def test_the_death_of_the_fork_server_costs_nothing(bench: Workbench):
    bench.pipe("go")
    first = bench.shell("read line < go")
    server = fork_server()
    server.kill()
    second = bench.shell("exit 2")
    assert bench.result(second).exit_code == 2
    assert fork_server() != server
    assert launch.settle(first) == LivingRun()
    (bench.worktree / "go").write_text("on\n")
    assert bench.result(first).succeeded


def test_a_fork_server_that_dies_before_it_forks_is_replaced(bench: Workbench):
    bench.result(bench.shell("true"))
    run = counting(bench)
    server = fork_server()
    server.suspend()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        start = pool.submit(bench.launcher.start, run)
        with pytest.raises(TimeoutError):
            start.result(0.5)
        server.kill()
        start.result(DEADLINE)
    assert bench.result(run).succeeded
    assert starts(bench) == 1


def test_the_fork_server_ends_with_its_daemon():
    source = str(Path(legion.__file__).parent.parent)
    with subprocess.Popen(
        python("-c", WARM), env={**os.environ, "PYTHONPATH": source}, stdout=subprocess.PIPE, text=True
    ) as daemon:
        assert daemon.stdout is not None
        assert daemon.stdout.readline() == "warm\n"
        (server,) = psutil.Process(daemon.pid).children()
        daemon.kill()
        assert_gone([server])


def test_a_launcher_closes_at_once_even_if_its_fork_server_does_not_listen(bench: Workbench):
    bench.result(bench.shell("true"))
    server = fork_server()
    server.suspend()
    bench.launcher.close()
    assert_gone([server])


def test_after_killing_everything_at_once_nothing_lives_and_the_run_is_lost(bench: Workbench):
    ready, _ = bench.pipe("ready"), bench.pipe("never")
    run = counting(bench, FAMILY)
    bench.launcher.start(run)
    ready.line()
    program, runner, server = program_of(run), runner_of(run), fork_server()
    family = [program, *program.children(recursive=True)]
    for victim in (server, runner, program):
        victim.kill()
    assert bench.wait(run) == LostRun()
    assert_gone([*family, runner, server])
    assert starts(bench) == 1


def test_runs_leave_no_zombie_and_no_open_handle(bench: Workbench):
    bench.result(bench.shell("true"))
    me, server = psutil.Process(), fork_server()
    before = me.num_fds(), server.num_fds()
    for _ in range(5):
        run = bench.shell("(true &) ; true")
        bench.result(run)
        launch.settle(run)
        launch.stop(run)
    assert (me.num_fds(), server.num_fds()) == before
    # The child that has the SDK ready stays; runners have sessions of their own.
    runners = [child for child in server.children() if os.getsid(child.pid) != os.getsid(server.pid)]
    _, left = psutil.wait_procs(runners, DEADLINE)
    assert not left
