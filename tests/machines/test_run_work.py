"""One run on a machine: the real worker and real runners, for a head that answers over real TLS."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from legion.domain.machines.machine import PlacementState
from legion.domain.runs import Outcome, Run
from legion.git.core.errors import GitError
from legion.jobs.machine_runs import packs, remote
from legion.jobs.supervise.outcome import outcome
from legion.jobs.workspace.save import Saved
from legion.machine.link import HeadAnswer
from legion.machine.work import REPORTED, RunWork
from legion.machine.worker import Worker, opened
from legion.runner import launch
from legion.runner.launch import EndedRun, Launcher, LivingRun, LostRun, RunnerSilent
from legion.runner.spec import RunFolder, read_result
from legion.store.work import machines
from legion.system.paths import DataDir
from tests.machines.heads import Head

PATIENCE = 60.0


class LateLauncher(Launcher):
    """The runner comes up, and answers later than the launcher waits."""

    def __init__(self, before: Launcher) -> None:
        super().__init__()
        self._before = before
        self.tries = 0

    def start(self, run_dir: Path) -> None:
        self.tries += 1
        self._before.start(run_dir)
        raise RunnerSilent(f"No runner for {run_dir} answered in 30 s; is the machine overloaded?")


class Bench:
    """A head, and the worker of one machine whose parts are tried one by one."""

    def __init__(self, head: Head, worker: Worker) -> None:
        self.head = head
        self.worker = worker
        # The lease.
        worker._beat(worker._link, free=0, wait=0.0, patience=15.0)

    def run(self, command: str) -> Run:
        self.head.board.put(1, state="working", command=command)
        return self.head.taken(1, "desk")

    def work(self, run: Run, kind: type[RunWork] = RunWork) -> tuple[RunWork, threading.Event]:
        job = packs.job_of(self.head.board.context, run.name)
        (self.worker.context.data.runs / run.name).mkdir(parents=True)
        over = threading.Event()
        made = kind(
            self.worker.context,
            self.worker._link,
            self.worker._mirrors,
            job,
            phase=self.worker.phase,
            lease=self.worker._lease_file,
            relay=self.worker._relay.address,
            seat=threading.Lock(),
            snapshot_every=3600.0,
            ended=lambda name: over.set(),
        )
        return made, over

    def folder(self, run: Run) -> Path:
        return self.worker.context.data.runs / run.name


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    head = Head(tmp_path)
    desk = head.machine("desk")
    with opened(DataDir(tmp_path / "machine-desk"), desk) as worker:
        yield Bench(head, worker)
        worker._link.close()
        worker._poll.close()
    head.close()


def test_a_runner_that_answers_late_is_adopted(bench: Bench):
    late = LateLauncher(bench.worker.context.launcher)
    bench.worker.context = replace(bench.worker.context, launcher=late)
    run = bench.run("echo hello > hello.txt")
    work, over = bench.work(run)
    work.start()
    assert over.wait(PATIENCE)
    assert late.tries == 1
    assert bench.head.placed(run).state is PlacementState.ENDED
    result = read_result(bench.head.board.data.runs / run.name)
    assert result is not None, "its end is that of its program"
    assert outcome(EndedRun(result))[0] is Outcome.FINISHED


class BrokenAfterStart(RunWork):
    """The disk is full as soon as the program works."""

    living: bool
    """When the end was reported."""

    def _wait(self) -> EndedRun | LostRun:
        raise OSError(errno.ENOSPC, "No space left on device")

    def _report_trouble(self, trouble: Exception) -> None:
        self.living = isinstance(launch.settle(self._folder), LivingRun)
        super()._report_trouble(trouble)


def test_an_error_after_the_start_ends_the_program_before_the_head_knows(bench: Bench):
    run = bench.run("sleep 1000")
    work, over = bench.work(run, BrokenAfterStart)
    assert isinstance(work, BrokenAfterStart)
    work.start()
    assert over.wait(PATIENCE)
    assert not work.living
    assert isinstance(launch.settle(bench.folder(run)), LostRun)
    assert (bench.folder(run) / REPORTED).exists()
    assert bench.head.placed(run).state is PlacementState.ENDED
    # Whatever starts later for this run ends itself.
    assert RunFolder(bench.folder(run)).fenced.exists()


class FullDisk(RunWork):
    """Nothing can be saved."""

    def _save(self) -> Saved | None:
        self._unsaved = GitError(("git", "add"), "No space left on device").message
        return None


def test_a_finished_run_whose_tree_could_not_be_saved_is_lost_and_its_snapshot_no_proposal(bench: Bench):
    head = bench.head
    run = bench.run("echo done > done.txt")
    work, over = bench.work(run, FullDisk)
    hub = head.board.context.hub(1)
    # A snapshot of two minutes ago has arrived.
    (head.board.data.runs / run.name / "snapshot.json").write_text(f'{{"commit": "{head.board.change}"}}')
    work.start()
    assert over.wait(PATIENCE)
    context = head.board.context
    result = read_result(head.board.data.runs / run.name)
    assert result is not None
    assert outcome(EndedRun(result))[0] is Outcome.FINISHED
    assert remote._ended(context, run, head.placed(run)) == LostRun()
    assert "No space left on device" in remote.why_lost(context, run)
    saved = remote.saved(context, context.project(1), head.board.tickets[1], run)
    assert saved is not None, "the next run starts from there"
    assert saved.commit == head.board.change
    assert hub.kept("wip") == {}


def test_news_that_a_worker_cannot_deal_with_is_not_asked_for_again_and_again(bench: Bench):
    """A job of another release: the head sends it with every answer until its lease has ended."""
    head, worker = bench.head, bench.worker
    run = head.taken(2, "desk")
    with head.board.store.write() as tx:
        machines.take(tx, run.id, worker._name)
    (head.board.data.runs / run.name / "job.json").write_text('{"version": 99}')
    asked: list[float] = []
    enough = threading.Event()
    ask = worker._poll.call

    def call(*words: str, **more: object) -> HeadAnswer:
        asked.append(time.monotonic())
        if len(asked) == 6:
            enough.set()
        return ask(*words, **more)  # type: ignore[arg-type]

    worker._poll.call = call  # type: ignore[method-assign]
    asking = threading.Thread(target=worker._keep_asking)
    asking.start()
    assert enough.wait(PATIENCE)
    worker.stop()
    asking.join(PATIENCE)
    assert asked[5] - asked[1] >= 0.2 + 0.4 + 0.8
