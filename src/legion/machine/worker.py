"""The worker: keeps the lease, takes jobs, passes requests of the head on to runs, and ends on request.

Runs outlive it. A new worker on the same folder continues with every run that the head has not settled.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import signal
import sys
import threading
import time
from collections import OrderedDict, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from legion import __version__
from legion.config.files import user
from legion.config.files.user import CurrentSettings
from legion.domain.errors import StateConflict
from legion.domain.machines.machine import PROTOCOL, CommandKind, LeasePhase, LeaseTimes, phase
from legion.jobs.context import Context
from legion.jobs.machines.travel import MachineJob
from legion.jobs.workspace import quota
from legion.jobs.workspace.quota import QuotaWatch
from legion.machine.housekeeping import MachineHousekeeper
from legion.machine.link import HeadLink, HeadRefused, HeadUnreachable, MachineError, NotAMachine, OutOfDate
from legion.machine.membership import Membership, boot, remember_heads
from legion.machine.mirror import Mirrors, TargetFollower
from legion.machine.relay import Relay
from legion.machine.uploads import BEATS
from legion.machine.work import RunWork, unfinished, write_job
from legion.runner import launch, lease
from legion.runner.launch import Launcher
from legion.runner.lease import LeaseFile
from legion.runner.probe import probe
from legion.runner.spec import RunnerError
from legion.store.database.transactions import Store, sqlite_url
from legion.system import capacity, files, kernel, loops, toolchain
from legion.system.capacity import DiskReserve
from legion.system.paths import DataDir
from legion.wire.machines import MachineBeat, MirrorTarget, RunRef

log = logging.getLogger("legion")

_LONGEST_WAIT = 25.0
_PAUSE, _LONGEST_PAUSE = 0.2, 10.0
_LOCK_PATIENCE = 2.0
_MOST_PASSED = 1000
_NEWS = ("jobs", "stop", "commands", "targets")
"""What makes the head answer a long poll at once."""


class Worker:
    def __init__(self, context: Context, membership: Membership) -> None:
        self.context = context
        self.membership = membership
        self._link = membership.link(context.data.root)
        self._poll = membership.link(context.data.root)
        """For the long poll alone, which ends with the worker."""
        self._times = membership.lease
        self._lease_file = context.data.root / "lease.json"
        known = LeaseFile.read(self._lease_file)
        # An earlier worker's lease counts: its runs may be alive by it.
        self._sent = known.sent if known is not None and known.left() > 0 else lease.now() - self._times.stop
        self._lock = threading.Lock()
        self._name = secrets.token_hex(8)
        self._works: dict[str, RunWork] = {}
        self._seats: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._acks: set[int] = set()
        self._passed: OrderedDict[int, None] = OrderedDict()
        """The commands of the head that were passed on lately, or are just now."""
        self._over = threading.Event()
        self._notice = ""
        self._knows_toolchain = False
        """The head got it from this process: programs may have changed since the last one."""
        self.exit_code = 0
        self._update: int | None = None
        """The request to start again, while the head does not know that it arrived."""
        self.starts_again = False
        self._reserve = DiskReserve(context.data.root / "reserve")
        self._mirrors = Mirrors(context.data, self._link)
        self._housekeeper = MachineHousekeeper(context, self._busy_seats)
        self._follower = TargetFollower(self._mirrors, self._housekeeper.poke)
        self._relay = Relay(context.data.root, membership, lambda: self._link.url, self._living)

    def run(self) -> int:
        """Until a signal, or until the head has removed this machine."""
        self._relay.start()
        self._make_room()
        for job in unfinished(self.context):
            self._take_up(job)
        housekeeper = self._housekeeper
        housekeeper.start()
        self._follower.start()
        quota_watch = QuotaWatch(self.context)
        quota_watch.start()
        beating = loops.lasting(self._keep_beating, name="beat", stopped=self._over.wait)
        beating.start()
        self._keep_asking()
        with self._lock:
            works = list(self._works.values())
        for work in works:
            work.close()
        housekeeper.stop()
        self._follower.stop()
        quota_watch.stop()
        beating.join()
        self._relay.stop()
        return self.exit_code

    def stop(self) -> None:
        """In a signal handler. The head notices that nothing waits here any more, and gives this worker no run."""
        self._over.set()
        self._poll.hang_up()

    def _busy_seats(self) -> set[str]:
        with self._lock:
            return {one.job.run.seat for one in self._works.values()}

    def _living(self, run: str) -> MachineJob | None:
        """The job of a run that works here and was not given away."""
        with self._lock:
            work = self._works.get(run)
        return work.job if work is not None and not work.is_fenced else None

    def phase(self) -> LeasePhase:
        with self._lock:
            return phase(sent=self._sent, now=lease.now(), times=self._times)

    def _make_room(self) -> None:
        """The reserve is there while the disk has room, and is given up where it has none."""
        if quota.has_room(self.context):
            self._reserve.keep()
        else:
            self._reserve.release()
            self._housekeeper.poke()

    def _keep_beating(self) -> None:
        while not self._over.is_set():
            self._make_room()
            self._beat_once()
            self._over.wait(self._times.beat)

    def _beat_once(self) -> None:
        self._beat(self._link, free=0, wait=0.0, patience=self._times.beat)

    def _keep_asking(self) -> None:
        """The long poll for jobs; it is a beat too. News that this worker cannot deal with comes again at once, so the
        same news twice waits, as an error does.
        """
        pause, known = _PAUSE, None
        while not self._over.is_set():
            fresh = self.phase() is LeasePhase.FRESH
            # A request to start again is acknowledged at once.
            wait = min(_LONGEST_WAIT, self._times.quiet / 2) if fresh and self._update is None else 0.0
            answer = self._beat(self._poll, free=1000, wait=wait, patience=wait + self._times.beat)
            news = None if answer is None else {name: answer.get(name) for name in _NEWS}
            if news is not None and (news != known or not any(news.values())):
                pause = _PAUSE
            else:
                self._over.wait(pause)
                pause = min(pause * 2, _LONGEST_PAUSE, self._times.beat)
            known = news

    def _beat(self, link: HeadLink, *, free: int, wait: float, patience: float) -> Mapping[str, Any] | None:
        """One request. What the head answered; None where it did not."""
        with self._lock:
            running = [RunRef(run=one.name, generation=one.job.run.generation) for one in self._works.values()]
            acks = set(self._acks)
        targets = self._mirrors.targets()
        wanted = MachineBeat(
            boot=boot(),
            worker=self._name,
            version=__version__,
            protocol=PROTOCOL,
            running=running,
            mirrors=sorted(targets),
            acks=sorted(acks),
            free=free,
            wait=wait,
            toolchain=None if self._knows_toolchain else toolchain.fingerprint(),
            disk_free_mb=capacity.free_mb(self.context.data.root),
            disk_floor_mb=self.context.user.environment.free_mb,
            targets=[MirrorTarget(project=project, commit=commit) for project, commit in targets.items()],
        )
        sent = lease.now()
        try:
            answer = link.call("POST", "/beat", content=asdict(wanted), patience=patience).json()
        except NotAMachine as removed:
            self._end(removed)
            return None
        except OutOfDate as far:
            # Its runs continue for the rest of the lease: an update takes less.
            self.exit_code = far.exit_code
            log.error("%s", far.message)
            self._over.set()
            return None
        except (HeadUnreachable, HeadRefused) as away:
            if not self._over.is_set():
                log.warning("%s", away.message)
            return None
        self._knows_toolchain = True
        try:
            return self._act_on(sent, answer, acks)
        except OSError as refused:
            # A full disk, say. Runs end by their lease if it lasts.
            log.error("the answer of the head was not recorded, will retry: %s", refused)
            self._reserve.release()
            self._housekeeper.poke()
            return None

    def _act_on(self, sent: float, answer: Mapping[str, Any], acks: Collection[int]) -> Mapping[str, Any]:
        self._renew(sent, answer)
        with self._lock:
            self._acks.difference_update(acks)
            knows = self._update in acks
        if knows:
            self.starts_again = True
            self._over.set()
            return answer
        self._obey(answer)
        return answer

    def _renew(self, sent: float, answer: Mapping[str, Any]) -> None:
        """The lease counts from the moment at which the answered beat was sent."""
        times = answer.get("lease")
        with self._lock:
            if times is not None:
                self._times = LeaseTimes(**{name: float(times[name]) for name in ("beat", "quiet", "stop", "reap")})
            if sent > self._sent:
                renewed = LeaseFile(sent=sent, stop=self._times.stop)
                try:
                    renewed.write(self._lease_file)
                except OSError:
                    if not self._reserve.release():
                        raise
                    renewed.write(self._lease_file)
                self._sent = sent

    def _obey(self, answer: Mapping[str, Any]) -> None:
        notice = str(answer.get("notice", ""))
        if notice not in ("", self._notice):
            log.warning("no new runs: %s", notice)
        self._notice = notice
        for one in answer.get("stop", ()):
            with self._lock:
                work = self._works.get(str(one["run"]))
            if work is not None and work.job.run.generation == one["generation"]:
                work.fence()
        for facts_ in answer.get("jobs", ()):
            try:
                self._take_up(write_job(self.context, facts_))
            except (ValueError, KeyError, TypeError) as strange:
                log.error("a job of the head cannot be read, update Legion here: %r", strange)
        heads = [str(one) for one in answer.get("heads", ())]
        self._poll.know(heads)
        if self._link.know(heads):
            remember_heads(self.context.data.root, heads)
        if moved := {int(one["project"]): str(one["commit"]) for one in answer.get("targets", ())}:
            self._follower.moved(moved)
        for command in answer.get("commands", ()):
            self._pass_on_once(int(command["id"]), command)

    def _take_up(self, job: MachineJob) -> None:
        with self._lock:
            if job.run.name in self._works or (self.context.data.runs / job.run.name / "reported.json").exists():
                return
            work = self._works[job.run.name] = RunWork(
                self.context,
                self._link,
                self._mirrors,
                job,
                phase=self.phase,
                lease=self._lease_file,
                relay=self._relay.address,
                seat=self._seats[job.run.seat],
                snapshot_every=BEATS * self._times.beat,
                beat=self._beat_once,
                ended=self._ended,
            )
        work.start()

    def _ended(self, run: str) -> None:
        with self._lock:
            self._works.pop(run, None)
            idle = not self._works
        if idle or not quota.has_room(self.context):
            self._housekeeper.poke()

    def _pass_on_once(self, number: int, command: Mapping[str, Any]) -> None:
        """Two answers that overlap hold the same command, and the later one may come after the head knows that it
        arrived. One that did not reach its runner is tried again with the next answer.
        """
        with self._lock:
            if number in self._passed:
                return
            self._passed[number] = None
            while len(self._passed) > _MOST_PASSED:
                self._passed.popitem(last=False)
        done = False
        try:
            done = self._pass_on(command)
        finally:
            with self._lock:
                if done:
                    self._acks.add(number)
                else:
                    self._passed.pop(number, None)

    def _pass_on(self, command: Mapping[str, Any]) -> bool:
        """Whether the request needs no other try: it reached its runner, or its run is not here."""
        if command["kind"] == CommandKind.UPDATE.value:
            self._update = int(command["id"])
            return True
        with self._lock:
            work = self._works.get(str(command["run"]))
        if work is None:
            return True
        folder = self.context.data.runs / work.name
        given: Mapping[str, Any] = command.get("facts", {})
        try:
            match CommandKind(command["kind"]):
                case CommandKind.STOP:
                    work.cancel(given.get("grace"))
                    return True
                case CommandKind.INTERRUPT:
                    return launch.interrupt(folder, str(given.get("id", "")), str(given.get("text", "")))
                case CommandKind.TELL:
                    return launch.tell(folder, str(given["id"]), str(given["text"]))
                case CommandKind.PERMIT:
                    return launch.permit(
                        folder, str(given["question"]), given["allowed"] is True, str(given.get("why", ""))
                    )
        except ValueError:
            log.error("the head asks for %r, which this release does not know: update Legion here", command["kind"])
            return True
        except RunnerError as silent:
            log.warning("run %s: %s", work.name, silent.message)
        return False

    def _end(self, why: MachineError) -> None:
        """The head has removed this machine, or is too far apart: agents end now, and nothing is sent any more."""
        if self._over.is_set():
            return
        self.exit_code = why.exit_code
        log.error("%s", why.message)
        with self._lock:
            works = list(self._works.values())
        for work in works:
            work.fence()
        self._over.set()


@contextlib.contextmanager
def opened(data: DataDir, membership: Membership) -> Iterator[Worker]:
    """The worker of this folder, wired and not started yet. Raises StateConflict where one runs already."""
    data.prepare()
    kernel.hide_memory()
    try:
        lock = files.lock(data.root / "machine.lock", patience=_LOCK_PATIENCE)
    except files.AlreadyLocked:
        raise StateConflict(f"A worker already serves {data.root}: end it first.") from None
    loops.watch(lock.path, lambda: loops.end_process(lock.path))
    launcher = Launcher()
    launcher.warm()
    # After a power cut, job files bring back every row that counts.
    store = Store(sqlite_url(data.database), durable=False)
    try:
        store.migrate()
        own = user.load()
        context = Context(
            data=data,
            store=store,
            launcher=launcher,
            settings=CurrentSettings(own),
            sandbox=probe(own.sandbox.container),
            url="",
            machine=membership.name,
            clock=time.time,
        )
        yield Worker(context, membership)
    finally:
        launcher.close()
        store.close()
        lock.release()


def serve(data_dir: Path, membership: Membership) -> int:
    """Work in the foreground until a signal. Returns the exit code."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    with opened(DataDir(data_dir), membership) as worker:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: worker.stop())
        log.info("machine %s works for %s (pid %s)", membership.name, membership.url, os.getpid())
        code = worker.run()
    if worker.starts_again:
        log.info("this worker starts again, as the release that is installed here now")
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
    return code


__all__ = ["MachineError", "Worker", "opened", "serve"]
