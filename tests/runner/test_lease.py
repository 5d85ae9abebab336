"""A run on a machine ends with its lease, by the runner alone: no worker has to be alive for that."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import psutil
import pytest

from legion.runner import launch, lease
from legion.runner.launch import FreshRun, LostRun
from legion.runner.lease import LeaseFile
from legion.runner.spec import RunFolder
from tests.runner.runs import DEADLINE, Workbench, assert_gone, program_of, runner_of

FIRST_LEASE = 4.0
"""Seconds; a run starts within them also on a busy machine."""


def renewed(file: Path, seconds: float) -> Path:
    LeaseFile(sent=lease.now(), stop=seconds).write(file)
    return file


def test_a_program_ends_with_a_lease_that_is_not_renewed(bench: Workbench):
    pipe = bench.pipe("started")
    file = renewed(bench.root / "lease.json", 3600.0)
    run_dir = bench.shell("echo up > started; sleep 1000", lease=file)
    assert pipe.line() == "up"
    program = program_of(run_dir)
    all_of_it = [program, *program.children(recursive=True)]
    renewed(file, 0.2)
    assert bench.wait(run_dir) == LostRun(), "it has no result"
    assert_gone(all_of_it)


def test_a_renewed_lease_lets_it_work(bench: Workbench):
    """One renewal, so that a test process that gets no time for a while does not end the run."""
    up, go = bench.pipe("started"), bench.worktree / "go"
    os.mkfifo(go)
    file = renewed(bench.root / "lease.json", FIRST_LEASE)
    run_dir = bench.shell("echo up > started; cat go; echo done", lease=file)
    assert up.line() == "up"
    renewed(file, 3600.0)
    with pytest.raises(psutil.TimeoutExpired):
        runner_of(run_dir).wait(FIRST_LEASE)
    go.write_text("")
    assert bench.result(run_dir).succeeded


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
