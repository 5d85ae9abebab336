"""Kill anything at any time: a program starts once, a run is never in doubt, and nothing is left behind."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

import legion
from legion.drivers import EndKind
from legion.runner import control, launch
from legion.runner.journal import JournalKind
from legion.runner.launch import EndedRun, Launcher, LivingRun, LostRun
from legion.runner.spec import read_result
from legion.system import crash, files
from legion.system.crash import Point
from tests.runner.runs import (
    DEADLINE,
    FAMILY,
    Workbench,
    assert_gone,
    counting,
    program_of,
    python,
    runner_of,
    starts,
    until,
)
from tests.support.sampling import sampled


def started_by_another(run_dir: Path, **environment: str) -> int:
    """A copy of this process starts the run and is gone, as a daemon that was killed. Returns its exit code."""
    copy = os.fork()
    if copy == 0:
        try:
            os.environ.update(environment)
            crash.load_environment()
            Launcher().start(run_dir)
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1])


def test_a_run_outlives_the_daemon_that_started_it_and_the_next_one_adopts_it(bench: Workbench):
    bench.pipe("go")
    run = counting(bench, "read line < go; exit 4")
    assert started_by_another(run) == 0
    assert launch.settle(run) == LivingRun()
    bench.launcher.start(run)
    (bench.worktree / "go").write_text("on\n")
    assert bench.result(run).exit_code == 4
    assert starts(bench) == 1


def test_starting_a_run_again_never_starts_its_program_again(bench: Workbench):
    run = counting(bench)
    for _ in range(3):
        bench.launcher.start(run)
        bench.result(run)
    assert starts(bench) == 1


def test_many_starts_of_one_run_at_once_start_one_program(bench: Workbench):
    bench.pipe("go")
    run = counting(bench, "read line < go")
    others = [Launcher() for _ in range(2)]
    launchers = [bench.launcher, *others]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda number: launchers[number % 3].start(run), range(24)))
        # Looking must never make a runner think that the run is taken.
        assert set(pool.map(lambda _: launch.settle(run), range(100))) == {LivingRun()}
    (bench.worktree / "go").write_text("on\n")
    assert bench.result(run).succeeded
    assert starts(bench) == 1
    for other in others:
        other.close()


def test_a_look_at_the_wrong_moment_keeps_no_runner_from_its_run(bench: Workbench):
    run_dirs = [bench.prepare(["true"]) for _ in range(10)]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for run in run_dirs:
            looks = [pool.submit(launch.settle, run) for _ in range(20)]
            bench.launcher.start(run)
            for look in looks:
                look.result(DEADLINE)
            assert bench.result(run).succeeded


def test_a_runner_waits_while_somebody_looks(bench: Workbench):
    run = bench.prepare(["true"])
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        # A look takes the lock for a moment; this one takes a long moment.
        with control.gate(run):
            held = files.lock(run / "lock")
            try:
                start = pool.submit(bench.launcher.start, run)
                with pytest.raises(TimeoutError):
                    start.result(0.5)
            finally:
                held.release()
        start.result(DEADLINE)
    assert bench.result(run).succeeded


def test_a_killed_runner_takes_its_program_along_and_the_run_is_lost(bench: Workbench):
    ready, _ = bench.pipe("ready"), bench.pipe("never")
    run = counting(bench, FAMILY)
    bench.launcher.start(run)
    ready.line()
    program, runner = program_of(run), runner_of(run)
    family = [program, *program.children(recursive=True)]
    runner.kill()
    # Nobody has to notice for that: the kernel does it.
    assert_gone([program])
    assert bench.wait(run) == LostRun()
    assert not [process for process in family if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]
    assert launch.settle(run) == LostRun()
    bench.launcher.start(run)
    assert launch.settle(run) == LostRun()
    assert not launch.stop(run)
    assert starts(bench) == 1


def test_a_killed_runner_also_takes_along_what_went_into_a_session_of_its_own(bench: Workbench):
    """Claude Code starts each of its tools like that."""
    ready, _ = bench.pipe("ready"), bench.pipe("never")
    run = bench.shell("setsid sh -c 'echo go > ready; read line < never' & read line < never")
    ready.line()
    family = runner_of(run).children(recursive=True)
    runner_of(run).kill()
    assert bench.wait(run) == LostRun()
    assert not [process for process in family if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]


def test_a_killed_program_is_a_program_that_ended(bench: Workbench):
    ready = bench.pipe("ready")
    run = bench.shell("echo go > ready; exec tail -f /dev/null")
    ready.line()
    program_of(run).kill()
    result = bench.result(run)
    assert (result.outcome, result.exit_code) == (EndKind.EXITED, 128 + signal.SIGKILL)


def test_a_killed_bubblewrap_ends_the_run_and_all_in_it(sandboxed: Workbench):
    ready = sandboxed.pipe("ready")
    run = sandboxed.shell("echo go > ready; exec tail -f /dev/null")
    ready.line()
    inside = program_of(run)
    family = [inside, *inside.children(recursive=True)]
    (outer,) = runner_of(run).children()
    outer.kill()
    assert sandboxed.result(run).exit_code == 128 + signal.SIGKILL
    assert not [process for process in family if process.is_running()]


def test_thirty_runs_start_at_once(bench: Workbench):
    bench.pipe("go")
    run_dirs = [bench.prepare(["cat", "go"]) for _ in range(30)]
    with concurrent.futures.ThreadPoolExecutor(30) as pool:
        list(pool.map(bench.launcher.start, run_dirs))
        assert {launch.settle(run) for run in run_dirs} == {LivingRun()}
        assert {launch.stop(run, 5) for run in run_dirs} == {True}
        results = list(pool.map(bench.result, run_dirs))
    assert {result.outcome for result in results} == {EndKind.STOPPED}


def test_a_runner_may_also_be_started_without_a_fork_server(bench: Workbench):
    run = counting(bench, "exit 6")
    reading, writing = os.pipe()
    source = str(Path(legion.__file__).parent.parent)
    try:
        subprocess.run(
            python("-P", "-m", "legion.runner.host", str(run), str(writing)),
            env={"PYTHONPATH": source},
            pass_fds=(writing,),
            timeout=DEADLINE,
            check=True,
        )
        assert os.read(reading, 100) == b"ready "
    finally:
        os.close(reading)
        os.close(writing)
    assert bench.result(run).exit_code == 6


RUNNER_POINTS = [point for point in Point if point.value.startswith("runner.")]


@pytest.mark.parametrize("bench", sampled([True, False], 1), indirect=True, ids=["sandboxed", "bare"])
@pytest.mark.parametrize("point", RUNNER_POINTS, ids=lambda point: point.value)
def test_a_crash_at_any_step_never_starts_the_program_twice(bench: Workbench, point: Point):
    run = counting(bench, "exit 8")
    log = bench.root / "reached"
    started_by_another(run, LEGION_CRASH_AT=point.value, LEGION_CRASH_LOG=str(log))
    if launch.settle(run) == LivingRun():
        # It may be about to die without having started the program.
        with contextlib.suppress(launch.RunNotStarted):
            bench.wait(run)
    assert point.value in log.read_text().splitlines()

    # The next daemon does what it always does: adopt or start.
    bench.launcher.start(run)
    state = bench.wait(run)
    assert starts(bench) <= 1
    if point in (Point.RUNNER_PROGRAM_AFTER_START, Point.RUNNER_RESULT_BEFORE_WRITE):
        assert state == LostRun()
    else:
        assert isinstance(state, EndedRun)
        assert state.result.exit_code == 8
        assert starts(bench) == 1


def test_the_result_is_there_before_anybody_hears_of_the_end(bench: Workbench):
    bench.pipe("go")
    run = bench.shell("read line < go")
    until(run, JournalKind.STARTED)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        waits = [pool.submit(launch.wait, run) for _ in range(8)]
        (bench.worktree / "go").write_text("on\n")
        results = {wait.result(DEADLINE) for wait in waits}
    expected = read_result(run)
    assert expected is not None
    assert results == {EndedRun(expected)}
