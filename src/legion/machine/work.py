"""One run on this machine, from the job that arrived to the end that the head accepted.

Every step may find its work done already, as in the head's own run job: a killed worker's successor reads the run's
folder and continues there. Where the head has given the run away, the program is ended and its tree is sent as late
work; nothing else of it counts any more.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from legion.domain.errors import LegionError
from legion.domain.machines.machine import LeasePhase
from legion.git.core.errors import GitProblem
from legion.jobs.agent import preparation
from legion.jobs.agent.preparation import RelayAddress
from legion.jobs.board import Board
from legion.jobs.context import Context
from legion.jobs.machines.travel import FILE, MachineJob
from legion.jobs.supervise.outcome import run_outcome
from legion.jobs.workspace import environment, quota, setup
from legion.jobs.workspace.save import Saved, save
from legion.machine import job_tree, mirror
from legion.machine.link import Fenced, HeadLink, HeadRefused, HeadUnreachable, MachineError, NotAMachine, OutOfDate
from legion.machine.mirror import Mirrors
from legion.machine.uploads import TreeSnapshots, Uploader
from legion.runner import launch
from legion.runner.launch import EndedRun, FreshRun, LivingRun, LostRun, RunnerSilent, RunNotStarted
from legion.runner.spec import RunFolder, RunnerError
from legion.store.database.errors import StoreFull
from legion.store.work import runs
from legion.system import crash, files
from legion.system.crash import Point
from legion.wire.machines import MachineRunEnd

log = logging.getLogger("legion")

REPORTED = "reported.json"
"""In the folder of a run that needs nothing more from this machine."""
_PAUSE, _LONGEST_PAUSE = 0.5, 15.0
_MOST_SENDS = 3
"""Tries of a pack that the head finds damaged."""
_MOST_STARTS = 3
"""Tries of a runner that does not answer in time."""
_CANCELLED = "stopped before its program was started"


class _Over(Exception):
    """This worker ends; the next one continues."""


class RunWork:
    """A thread per run. `phase` is the state of this machine's lease; `relay` starts what agents reach the head by."""

    def __init__(
        self,
        context: Context,
        link: HeadLink,
        mirrors: Mirrors,
        job: MachineJob,
        *,
        phase: Callable[[], LeasePhase],
        lease: Path,
        relay: Callable[[MachineJob], RelayAddress],
        seat: threading.Lock,
        snapshot_every: float,
        beat: Callable[[], object],
        ended: Callable[[str], None],
    ) -> None:
        self.job = job
        self._context = context
        self._link = link
        self._mirrors = mirrors
        self._phase = phase
        self._lease = lease
        self._relay = relay
        self._seat = seat
        self._snapshot_every = snapshot_every
        self._beat = beat
        self._ended = ended
        self._folder = context.data.runs / job.run.name
        self._fenced = threading.Event()
        self._cancelled = threading.Event()
        self._closing = threading.Event()
        self._unsaved = ""
        """Why its tree could not be saved the last time."""
        self._uploader: Uploader | None = None
        self._thread = threading.Thread(target=self._run, name=job.run.name, daemon=True)

    @property
    def name(self) -> str:
        return self.job.run.name

    @property
    def is_fenced(self) -> bool:
        return self._fenced.is_set()

    def start(self) -> None:
        self._thread.start()

    def fence(self) -> None:
        """The head has given the run away: its program ends, and its tree is sent as late work."""
        if not self._fenced.is_set():
            log.warning("run %s is no longer this machine's, so its program is ended", self.name)
            # The runner looks for it, too: it ends even if it does not answer.
            RunFolder(self._folder).fenced.touch()
            self._fenced.set()
        self._stop_program(grace=0.0)

    def close(self) -> None:
        """The worker ends: the program works on, and the next worker adopts it."""
        self._closing.set()
        if self._uploader is not None:
            self._uploader.give_up()

    def cancel(self, grace: float | None) -> None:
        """A person stopped the run."""
        self._cancelled.set()
        self._stop_program(grace)

    def _stop_program(self, grace: float | None) -> None:
        try:
            launch.stop(self._folder, grace=grace)
        except (RunnerError, OSError) as silent:
            log.warning("run %s does not stop yet: %s", self.name, silent)

    def _run(self) -> None:
        with self._seat:
            is_over = self._try_to_the_end()
        if is_over:
            self._ended(self.name)

    def _try_to_the_end(self) -> bool:
        """Whether this machine has nothing more to do for it. The next run of the seat gets its tree after that."""
        try:
            self._to_the_end()
        except _Over:
            return False
        except NotAMachine:
            self._stop_program(grace=0.0)
            return False
        except Exception as trouble:  # whatever it is, the head must get to know that this run ended here
            log.error("run %s: %s", self.name, trouble, exc_info=not isinstance(trouble, LegionError | OSError))
            self._end_program()
            self._report_trouble(trouble)
        return True

    def _end_program(self) -> None:
        """Returns when no process of the run is left, and none can start: the head gives it to another place next. A
        disk that is full makes it try again.
        """
        while not self._closing.is_set():
            try:
                # A runner that comes up late finds it, and starts nothing.
                RunFolder(self._folder).fenced.touch()
                if not isinstance(self._settle(), LivingRun):
                    return
                self._stop_program(grace=0.0)
                launch.wait(self._folder)
            except RunNotStarted:
                return
            except OSError as trouble:
                log.warning("run %s: its program is not ended yet, will retry: %s", self.name, trouble)
                self._closing.wait(_PAUSE)

    def _to_the_end(self) -> None:
        if not self._fenced.is_set():
            try:
                self._carry_out()
                return
            except Fenced:
                self.fence()
        self._send_late()

    def _carry_out(self) -> None:
        found = self._settle()
        if isinstance(found, FreshRun):
            try:
                self._prepare()
            except (MachineError, _Over):
                raise
            except LegionError as wrong:
                failed_setup = isinstance(wrong, setup.SetupFailed)
                self._report(MachineRunEnd(failed=wrong.message, setup_failed=failed_setup))
                return
            if not self._launch():
                self._report(MachineRunEnd(failed=_CANCELLED))
                return
        else:
            job_tree.write_rows(self._context, self.job)
        ended = self._wait()
        if self._fenced.is_set():
            raise Fenced("the head has given it away")
        saved = self._save() if self.job.saves else None
        self._give_up_tree_of_full_disk()
        self._release(ended)
        crash.reach(Point.MACHINE_SEND_AFTER_FILES)
        self._send_end(ended, saved)
        if not self.job.saves:
            job_tree.project(self._context, self.job).worktrees.discard(self.job.run.seat)

    def _settle(self) -> FreshRun | LivingRun | EndedRun | LostRun:
        return launch.settle(self._folder)

    def _prepare(self) -> None:
        """Code, worktree, dependencies, environment, spec."""
        job = self.job
        self._insist(lambda: self._mirrors.prepare(job))
        project = job_tree.write_rows(self._context, self.job)
        setup.drop_stale_pool(project)
        tree = job_tree.worktree(project, job) if job.saves else job_tree.checkout(project, job)
        relay = self._relay(job) if job.model is not None or job.input.tool_link is not None else None
        preparation.prepare_job(self._context, project, job, tree, relay=relay, lease=self._lease)

    def _launch(self) -> bool:
        """Start the program once, and only while the lease is fresh. False where it was stopped before."""
        pause = threading.Event()
        while self._phase() is not LeasePhase.FRESH:
            self._check()
            pause.wait(0.1)
        if self._cancelled.is_set():
            return False
        self._check()
        crash.reach(Point.MACHINE_START_BEFORE_LAUNCH)
        self._start_or_adopt()
        crash.reach(Point.MACHINE_START_AFTER_LAUNCH)
        return True

    def _start_or_adopt(self) -> None:
        """On a loaded machine a runner may answer late. Starting it again is safe: the program starts once."""
        for left in reversed(range(_MOST_STARTS)):
            try:
                self._context.launcher.start(self._folder)
            except RunnerSilent as late:
                log.warning("run %s: %s", self.name, late.message)
                if isinstance(self._settle(), FreshRun):
                    if not left:
                        raise
                    self._closing.wait(_PAUSE)
                    self._check()
                    continue
            return

    def _check(self) -> None:
        if self._closing.is_set():
            raise _Over
        if self._fenced.is_set():
            raise Fenced("the head has given it away")

    def _wait(self) -> EndedRun | LostRun:
        uploader = self._uploader = Uploader(self._link, self.job, self._folder, self.fence)
        uploader.start()
        found = self._settle()
        ended = self._wait_for_end() if isinstance(found, LivingRun) else found
        assert isinstance(ended, EndedRun | LostRun), "a started run lives, ended or was lost"
        uploader.finish()
        if self._closing.is_set():
            raise _Over
        return ended

    def _wait_for_end(self) -> EndedRun | LostRun:
        if not self.job.saves:
            return launch.wait(self._folder)
        snapshots = TreeSnapshots(self.name, save=self._save, send=self._send_snapshot, every=self._snapshot_every)
        snapshots.start()
        try:
            return launch.wait(self._folder)
        finally:
            snapshots.stop()

    def _send_snapshot(self, commit: str) -> None:
        self._send_pack(commit, late=False)
        path = f"/runs/{self.name}/{self.job.run.generation}/snapshot"
        self._link.call("POST", path, query={"commit": commit}, patience=60.0)

    def _save(self) -> Saved | None:
        """The tree as a commit in the mirror. Same tree, same commit."""
        project = job_tree.project(self._context, self.job)
        tree = project.worktrees.path(self.job.run.seat)
        try:
            saved = save(self._context, project, job_tree.ticket(self.job), self.job.run, tree)
        except (GitProblem, StoreFull, OSError) as wrong:
            log.error("run %s: its tree could not be saved: %s", self.name, wrong)
            self._unsaved = str(wrong)
            return None
        crash.reach(Point.MACHINE_SAVE_AFTER_KEEP)
        return saved

    def _give_up_tree_of_full_disk(self) -> None:
        """What could be saved is saved, and nothing else has room before its tree is gone."""
        if not quota.is_short(self._context, self._context.data.root):
            return
        # The head gives this machine nothing meanwhile.
        self._beat()
        worktrees = job_tree.project(self._context, self.job).worktrees
        held = quota.measure((worktrees.path(self.job.run.seat),)).bytes
        worktrees.discard(self.job.run.seat)
        worktrees.empty_trash(older_than=0.0, keep_bytes=0, now=time.time() + 1.0)
        quota.mark(self._context, self.name, held=held, limit=0)

    def _release(self, ended: EndedRun | LostRun) -> None:
        """Undo what was prepared, and release the slot."""
        outcome, detail = run_outcome(ended)
        environment.release(self._context, self.job.run, outcome)
        with self._context.store.write() as tx:
            known = runs.get(tx, self.job.run.id)
            if known.ended_at is None:
                runs.end(tx, known.id, outcome, detail)

    def _send_end(self, ended: EndedRun | LostRun, saved: Saved | None) -> None:
        result = json.loads(RunFolder(self._folder).result.read_bytes()) if isinstance(ended, EndedRun) else None
        tree = str(job_tree.project(self._context, self.job).worktrees.path(self.job.run.seat))
        over = quota.exceeded(self._context, self.job.run)
        end = MachineRunEnd(
            result=result,
            saved=None if saved is None else _facts(saved),
            unsaved=self._unsaved[:500] if saved is None else "",
            over_quota=[] if over is None else [over.bytes, over.limit],
            tree=tree,
        )
        for left in reversed(range(_MOST_SENDS)):
            try:
                if saved is not None:
                    self._insist(lambda: self._send_pack(saved.commit, late=False))
                    crash.reach(Point.MACHINE_SEND_AFTER_PACK)
                self._report(end)
            except HeadRefused as refused:
                log.error("run %s: the head refuses its end: %s", self.name, refused.message)
                if not left:
                    self._report(MachineRunEnd(result=result, failed=refused.message))
            else:
                return

    def _send_pack(self, commit: str, *, late: bool) -> None:
        hub = self._context.hub(self.job.project.id)
        mirror.send(self._link, hub, self.job, self._folder, commit, late=late)

    def _report(self, end: MachineRunEnd) -> None:
        path = f"/runs/{self.name}/{self.job.run.generation}/end"
        self._insist(lambda: self._link.call("POST", path, content=asdict(end)))
        crash.reach(Point.MACHINE_SEND_AFTER_END)
        self._done()

    def _report_trouble(self, trouble: Exception) -> None:
        try:
            self._report(MachineRunEnd(failed=f"{type(trouble).__name__}: {trouble}"[:500]))
        except (MachineError, _Over, OSError) as worse:
            log.error("run %s: its end is not reported: %s", self.name, worse)

    def _send_late(self) -> None:
        """Whatever is in the tree reaches the head, under a name of its own."""
        self._end_program()
        found = self._settle()
        if isinstance(found, EndedRun | LostRun):
            job_tree.write_rows(self._context, self.job)
            saved = self._save() if self.job.saves else None
            self._release(found)
            if saved is not None:
                try:
                    self._insist(lambda: self._send_pack(saved.commit, late=True), fenced=True)
                    path = f"/runs/{self.name}/{self.job.run.generation}/late"
                    self._insist(lambda: self._link.call("POST", path, query={"commit": saved.commit}), fenced=True)
                except (Fenced, HeadRefused) as refused:
                    log.warning("run %s: its late work stays in this machine's mirror: %s", self.name, refused.message)
        self._done()

    def _insist(self, ask: Callable[[], Any], *, fenced: bool = False) -> Any:  # noqa: ANN401 - what `ask` returns
        """Repeat it until the head answers. Raises Fenced as soon as the run is given away, unless that is known."""
        pause = _PAUSE
        while True:
            if self._closing.is_set():
                raise _Over
            if self._fenced.is_set() and not fenced:
                raise Fenced("the head has given it away")
            try:
                return ask()
            except (HeadUnreachable, OutOfDate) as away:
                log.warning("run %s: %s", self.name, away.message)
                self._closing.wait(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)

    def _done(self) -> None:
        files.write_atomic(self._folder / REPORTED, "{}")


def _facts(saved: Saved) -> dict[str, Any]:
    unfinished = saved.unfinished.value if saved.unfinished is not None else None
    return {**asdict(saved), "unfinished": unfinished}


def write_job(context: Board, facts: dict[str, Any]) -> MachineJob:
    """Record the job before anything of it starts. Raises ValueError, KeyError or TypeError for a strange one."""
    job = MachineJob.from_json(facts)
    folder = context.data.runs / job.run.name
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    files.write_atomic(folder / FILE, json.dumps(facts))
    crash.reach(Point.MACHINE_JOB_AFTER_WRITE)
    return job


def unfinished(context: Board) -> list[MachineJob]:
    """The jobs of an earlier worker that still need something from this machine."""
    found = []
    for file in sorted(context.data.runs.glob(f"*/{FILE}")):
        if not (file.parent / REPORTED).exists():
            found.append(MachineJob.from_json(json.loads(file.read_bytes())))
    return found
