"""One run on a machine: the real worker and real runners, for a head that answers over real TLS."""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from legion.domain.machines.machine import PlacementState
from legion.domain.runs import Outcome, Run
from legion.git.core.errors import GitError
from legion.jobs.machine_runs import packs, remote
from legion.jobs.supervise.outcome import run_outcome
from legion.jobs.workspace.save import Saved
from legion.machine.work import REPORTED, RunWork
from legion.machine.worker import Worker, opened
from legion.runner import launch
from legion.runner.journal import JournalEvent, JournalKind
from legion.runner.launch import EndedRun, Launcher, LivingRun, LostRun, RunnerSilent
from legion.runner.spec import RunFolder, read_result
from legion.store.work import machines
from legion.system.paths import DataDir
from tests.machines.heads import Head
from tests.support.repository import Repository

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
        worker._beat_once()

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
            beat=self.worker._beat_once,
            ended=lambda name: over.set(),
        )
        return made, over

    def folder(self, run: Run) -> Path:
        return self.worker.context.data.runs / run.name


@contextmanager
def new_bench(folder: Path) -> Iterator[Bench]:
    head = Head(folder)
    desk = head.machine("desk")
    with opened(DataDir(folder / "machine-desk"), desk) as worker:
        yield Bench(head, worker)
        worker._link.close()
        worker._poll.close()
    head.close()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with new_bench(tmp_path) as bench:
        yield bench


def test_the_first_setup_of_a_ticket_fills_the_downloads_of_its_machine(tmp_path: Path):
    setup = """[setup]\nrun = 'mkdir -p deps "$PIP_CACHE_DIR" && touch "$PIP_CACHE_DIR/wheel"'\n"""
    Repository(tmp_path / "shop", setup).git("branch", "change")
    with new_bench(tmp_path) as bench:
        work, over = bench.work(bench.run("echo hello > hello.txt"))
        work.start()
        assert over.wait(PATIENCE)
        project = bench.worker.context.project(1)
        assert (project.cache / "pip" / "wheel").exists()
        assert "/deps" in (project.hub.path / "info/exclude").read_text()


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
    assert run_outcome(EndedRun(result))[0] is Outcome.FINISHED


class BrokenAfterStart(RunWork):
    """The disk is full as soon as the program works."""

    living: bool
    """When the end was reported."""

    def _wait(self) -> EndedRun | LostRun:
        return launch.wait(self._folder, self._break)

    def _break(self, event: JournalEvent) -> None:
        # A runner that answers has not begun yet: ended before, it would leave a fresh run.
        if event.kind == JournalKind.STARTING.value:
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
    assert run_outcome(EndedRun(result))[0] is Outcome.FINISHED
    assert remote._ended(context, run, head.placed(run)) == LostRun()
    assert "No space left on device" in remote.why_lost(context, run)
    saved = remote.saved(context, context.project(1), head.board.tickets[1], run)
    assert saved is not None, "the next run starts from there"
    assert saved.commit == head.board.change
    assert hub.kept("wip") == {}


class WatchedEvent(threading.Event):
    """Records how long it was waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.waited: list[float | None] = []
        self.enough = threading.Event()

    def wait(self, timeout: float | None = None) -> bool:
        self.waited.append(timeout)
        if len(self.waited) >= 4:
            self.enough.set()
        return super().wait(timeout)


def test_news_that_a_worker_cannot_deal_with_is_not_asked_for_again_and_again(bench: Bench):
    """A job of another release: the head sends it with every answer until its lease has ended."""
    head, worker = bench.head, bench.worker
    run = head.taken(2, "desk")
    with head.board.store.write() as tx:
        machines.take(tx, run.id, worker._name)
    (head.board.data.runs / run.name / "job.json").write_text('{"version": 99}')
    worker._over = waits = WatchedEvent()
    asking = threading.Thread(target=worker._keep_asking)
    asking.start()
    assert waits.enough.wait(PATIENCE)
    worker.stop()
    asking.join(PATIENCE)
    assert waits.waited[:3] == [0.2, 0.4, 0.8]


class Counted(Worker):
    """Counts what reaches a runner, and lets another answer come in between."""

    def __init__(self, worker: Worker) -> None:
        super().__init__(worker.context, worker.membership)
        self.passed: list[int] = []
        self.reaches = True
        self.meanwhile: dict[str, object] | None = None

    def _pass_on(self, command: Mapping[str, object]) -> bool:
        self.passed.append(int(str(command["id"])))
        if self.meanwhile is not None:
            answer, self.meanwhile = self.meanwhile, None
            self._obey(answer)
        return self.reaches


def test_a_command_that_comes_with_two_answers_is_passed_on_once(bench: Bench):
    worker = Counted(bench.worker)
    answer: dict[str, object] = {"commands": [{"id": 7, "run": "ticket-1-run-1", "kind": "tell", "facts": {}}]}
    worker.meanwhile = answer
    worker._obey(answer)
    assert worker._acks == {7}
    # The head knows it, and an answer of before arrives late.
    worker._acks.clear()
    worker._obey(answer)
    assert worker.passed == [7]
    worker.reaches = False
    other: dict[str, object] = {"commands": [{"id": 8, "run": "ticket-1-run-1", "kind": "tell", "facts": {}}]}
    worker._obey(other)
    worker._obey(other)
    assert worker.passed == [7, 8, 8], "one that reached no runner is tried again"
    worker._link.close()
    worker._poll.close()
