"""One run on this machine, from the job that arrived to the end that the head accepted.

Every step may find its work done already, as in the head's own run job: a killed worker's successor reads the run's
folder and continues there. Where the head has given the run away, the program is ended and its tree is sent as late
work; nothing else of it counts any more.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from legion.domain.errors import LegionError
from legion.domain.machines.leases import LeasePhase
from legion.domain.projects import ConfigOrigin, Project
from legion.domain.tickets.spec import TicketSpec
from legion.domain.tickets.ticket import Ticket
from legion.git.core.errors import GitProblem
from legion.jobs.agent import on_machine
from legion.jobs.agent.on_machine import RelayAddress
from legion.jobs.context import Context, ProjectContext
from legion.jobs.machines.travel import FILE, MachineJob
from legion.jobs.supervise import outcome as judging
from legion.jobs.workspace import environment, quota, setup
from legion.jobs.workspace.save import Saved, branch_name, save
from legion.machine import mirror
from legion.machine.errors import Fenced, HeadRefused, HeadUnreachable, MachineError, NotAMachine, OutOfDate
from legion.machine.link import HeadLink
from legion.machine.mirror import Mirrors
from legion.machine.snapshots import TreeSnapshots
from legion.machine.uploads import Uploader
from legion.runner import launch
from legion.runner.launch import EndedRun, FreshRun, LivingRun, LostRun
from legion.runner.spec import RunFolder, RunnerError, write_spec
from legion.store.board import projects, tickets
from legion.store.work import mirrored, runs
from legion.system import crash, files, safe_files
from legion.system.crash import Point
from legion.wire.machines import MachineRunEnd

log = logging.getLogger("legion")

REPORTED = "reported.json"
"""In the folder of a run that needs nothing more from this machine."""
_PAUSE, _LONGEST_PAUSE = 0.5, 15.0
_MOST_SENDS = 3
"""Tries of a pack that the head finds damaged."""
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
        self._ended = ended
        self._folder = context.data.runs / job.run.name
        self._fenced = threading.Event()
        self._cancelled = threading.Event()
        self._closing = threading.Event()
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
        try:
            with self._seat:
                self._to_the_end()
        except _Over:
            return
        except NotAMachine:
            self._stop_program(grace=0.0)
            return
        except Exception as trouble:  # whatever it is, the head must get to know that this run ended here
            log.error("run %s: %s", self.name, trouble, exc_info=not isinstance(trouble, LegionError))
            self._report_trouble(trouble)
        self._ended(self.name)

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
            self._write_rows()
        ended = self._wait()
        if self._fenced.is_set():
            raise Fenced("the head has given it away")
        saved = self._save() if self.job.saves else None
        self._release(ended)
        crash.reach(Point.MACHINE_SEND_AFTER_FILES)
        self._send_end(ended, saved)
        if not self.job.saves:
            self._project().worktrees.discard(self.job.run.seat)

    def _settle(self) -> FreshRun | LivingRun | EndedRun | LostRun:
        return launch.settle(self._folder)

    def _prepare(self) -> None:
        """Code, worktree, dependencies, environment, spec."""
        job = self.job
        self._insist(lambda: self._mirrors.prepare(job))
        project = self._write_rows()
        setup.drop_stale_pool(project)
        tree = self._worktree(project) if job.saves else self._checkout(project)
        if job.has_setup:
            shows = "" if job.saves or job.files or job.plant else job.start or job.base
            setup.ensure(self._context, project, tree, setup.record_of(project, tree), shows=shows)
        if job.has_environment:
            env = environment.prepare(self._context, project, job.run, tree)
        else:
            env = environment.bare(self._context, job.run)
        given = self._folder / "given"
        given.mkdir(parents=True, exist_ok=True)
        needs_head = job.model is not None or job.input.tool_link is not None
        spec = on_machine.run_spec(
            self._context,
            project,
            job,
            tree=tree,
            given=given,
            env=env,
            relay=self._relay(job) if needs_head else None,
            lease=self._lease,
        )
        write_spec(self._folder, spec)

    def _write_rows(self) -> ProjectContext:
        """What the steps of a run read of its project, its ticket and itself. Returns the project."""
        record = self._record()
        with self._context.store.write() as tx:
            mirrored.put_project(tx, record)
            # The head sends jobs only of what the person trusts there.
            projects.trust(tx, record.id, record.config_hash)
            if self.job.run.ticket is not None:
                tickets.mirror(tx, self._ticket())
            mirrored.put_run(tx, self.job.run)
        return self._context.project_of(record)

    def _project(self) -> ProjectContext:
        return self._context.project_of(self._record())

    def _record(self) -> Project:
        """The project as the head has it, with this machine's own folders."""
        job = self.job
        folder = self._context.data.project(job.project.id)
        place = self._context.data.root / "worktrees" / str(job.project.id)
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        return Project(
            id=job.project.id,
            name=job.project.name,
            root=str(place),
            common_dir=str(folder / "hub.git"),
            branch=job.project.branch,
            worktrees=str(place),
            config_text=job.project.config_text,
            config_hash=job.project.config_hash,
            config_origin=ConfigOrigin.TARGET,
            target=job.target,
        )

    def _worktree(self, project: ProjectContext) -> Path:
        """The one of the run before, where that was here; else a new one with the files that it left."""
        job = self.job
        seat, branch = job.run.seat, branch_name(job.run.ticket or 0)
        last = project.folder / "worktrees" / f"{seat}.run"
        before = last.read_text() if last.exists() else ""
        here = before in (job.previous, job.run.name) and before != "" and job.plant is None
        exists = project.worktrees.path(seat).exists()
        if (here and exists) or (job.plant is None and job.start is None and not exists):
            tree = project.worktrees.acquire(seat, job.base, branch)
        else:
            start = job.plant or project.hub.tree_of(job.start or job.base)
            tree = project.worktrees.replant(seat, job.base, start, branch, attempt=job.run.id)
        # An empty file means another run, whose worktree is replaced.
        files.write_atomic(last, job.run.name, durable=False)
        return tree

    def _checkout(self, project: ProjectContext) -> Path:
        """A fresh one: what an earlier run left there does not count."""
        job = self.job
        seat = job.run.seat
        start = job.plant or project.hub.tree_of(job.start or job.base)
        tree = project.worktrees.replant(seat, job.base, start, f"legion/{seat}", attempt=job.run.id)
        for path, text in job.files.items():
            safe_files.write(tree, path, text.encode())
        return tree

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
        self._context.launcher.start(self._folder)
        crash.reach(Point.MACHINE_START_AFTER_LAUNCH)
        return True

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
        project = self._project()
        tree = project.worktrees.path(self.job.run.seat)
        try:
            saved = save(self._context, project, self._ticket(), self.job.run, tree)
        except GitProblem as wrong:
            log.error("run %s: its tree could not be saved: %s", self.name, wrong.message)
            return None
        crash.reach(Point.MACHINE_SAVE_AFTER_KEEP)
        return saved

    def _ticket(self) -> Ticket:
        job = self.job
        spec = TicketSpec(title=job.title, text="")
        return Ticket(
            id=job.run.ticket or 0,
            project=job.project.id,
            spec=spec,
            attempt=job.run.attempt,
            base=job.base,
            plant=job.plant,
        )

    def _release(self, ended: EndedRun | LostRun) -> None:
        """Undo what was prepared, and release the slot."""
        outcome, detail = judging.outcome(ended)
        environment.release(self._context, self.job.run, outcome)
        with self._context.store.write() as tx:
            known = runs.get(tx, self.job.run.id)
            if known.ended_at is None:
                runs.end(tx, known.id, outcome, detail)

    def _send_end(self, ended: EndedRun | LostRun, saved: Saved | None) -> None:
        result = json.loads(RunFolder(self._folder).result.read_bytes()) if isinstance(ended, EndedRun) else None
        tree = str(self._project().worktrees.path(self.job.run.seat))
        over = quota.exceeded(self._context, self.job.run)
        end = MachineRunEnd(
            result=result,
            saved=None if saved is None else _facts(saved),
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
        except (MachineError, _Over) as worse:
            log.error("run %s: its end is not reported: %s", self.name, worse)

    def _send_late(self) -> None:
        """Whatever is in the tree reaches the head, under a name of its own."""
        found = self._settle()
        if isinstance(found, LivingRun):
            self._stop_program(grace=0.0)
            found = launch.wait(self._folder)
        if not isinstance(found, FreshRun):
            self._write_rows()
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


def write_job(context: Context, facts: dict[str, Any]) -> MachineJob:
    """Record the job before anything of it starts. Raises ValueError, KeyError or TypeError for a strange one."""
    job = MachineJob.from_json(facts)
    folder = context.data.runs / job.run.name
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    files.write_atomic(folder / FILE, json.dumps(facts))
    crash.reach(Point.MACHINE_JOB_AFTER_WRITE)
    return job


def unfinished(context: Context) -> list[MachineJob]:
    """The jobs of an earlier worker that still need something from this machine."""
    found = []
    for file in sorted(context.data.runs.glob(f"*/{FILE}")):
        if not (file.parent / REPORTED).exists():
            found.append(MachineJob.from_json(json.loads(file.read_bytes())))
    return found
