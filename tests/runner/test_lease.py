"""A run on a machine ends with its lease, by the runner alone: no worker has to be alive for that."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path

import psutil

from legion.runner import launch, lease
from legion.runner.launch import FreshRun, LostRun
from legion.runner.lease import LeaseFile
from legion.runner.spec import RunFolder
from tests.runner.runs import DEADLINE, Workbench, runner_of


def renewed(file: Path, seconds: float) -> Path:
    LeaseFile(sent=lease.now(), stop=seconds).write(file)
    return file


def test_a_program_ends_with_a_lease_that_is_not_renewed(bench: Workbench):
    pipe = bench.pipe("started")
    file = renewed(bench.root / "lease.json", 3600.0)
    run_dir = bench.shell("echo up > started; sleep 1000", lease=file)
    assert pipe.line() == "up"
    renewed(file, 0.2)
    assert bench.wait(run_dir) == LostRun(), "it has no result"
    assert not [one for one in psutil.process_iter() if "sleep 1000" in " ".join(_words(one))]


def test_a_renewed_lease_lets_it_work(bench: Workbench):
    file = renewed(bench.root / "lease.json", 1.0)
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(0.1):
            renewed(file, 1.0)

    renewing = threading.Thread(target=renew)
    renewing.start()
    try:
        assert bench.result(bench.shell("sleep 2; echo done", lease=file)).succeeded
    finally:
        ended.set()
        renewing.join()


def test_a_run_that_was_given_away_ends_whatever_its_lease_says(bench: Workbench):
    pipe = bench.pipe("started")
    file = renewed(bench.root / "lease.json", 3600.0)
    run_dir = bench.shell("echo up > started; sleep 1000", lease=file)
    assert pipe.line() == "up"
    RunFolder(run_dir).fenced.touch()
    assert bench.wait(run_dir) == LostRun()


def test_nothing_starts_without_a_lease(bench: Workbench):
    run_dir = bench.prepare(["touch", str(bench.worktree / "made")], lease=bench.root / "missing.json")
    bench.launcher.start(run_dir)
    with contextlib.suppress(psutil.NoSuchProcess):
        runner_of(run_dir).wait(DEADLINE)
    assert launch.settle(run_dir) == FreshRun()
    assert not (bench.worktree / "made").exists()


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []
