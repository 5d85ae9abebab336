"""The runner: the process that hosts one run. It takes the lock, starts the program once, and records how it ended.

Everything happens on its main thread, since the sandbox dies with the thread that started it. If this process is
killed, the program dies with it. It needs no daemon, which may be restarted meanwhile.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from enum import Enum
from pathlib import Path
from weakref import WeakSet

from legion.domain.egress import NetworkPlace, parse_places
from legion.drivers import Child, Ending, EndKind, Program, StartFailed, registry
from legion.runner import lease, load, tree
from legion.runner.child import Deaths, RunChild
from legion.runner.control import ControlServer, gate
from legion.runner.journal import Journal, JournalKind, read_journal
from legion.runner.sandbox import SandboxMissing, find_bwrap, is_setuid
from legion.runner.spec import RunFolder, RunnerError, RunResult, RunSpec, read_spec, write_result
from legion.runner.viewers import ViewerServer
from legion.system import cgroups, crash, files, kernel, loops
from legion.system.cgroups import GroupLimits, ProcessGroup
from legion.system.crash import Point

_UNTIL_THERE_IS_ROOM = 0.5
_FOLDER_EVERY = 5.0
"""Seconds between two looks whether the run's folder is still there; its program dies with the runner."""
_LONGEST_FAULT = 1000
_MOST_REFUSALS = 200
"""Places of one run that are recorded."""


class LimitedGroup:
    """The group of one run. Where this machine has none, its programs start without limits, as doctor reports."""

    def __init__(self, run_dir: Path, limits: GroupLimits) -> None:
        self._limits = limits
        home = None if limits.is_empty else cgroups.find()
        self._group: ProcessGroup | None = None if home is None else home.group(run_dir)

    @contextlib.contextmanager
    def joined(self) -> Iterator[None]:
        """The programs that are started inside are limited."""
        with contextlib.ExitStack() as stack:
            if self._group is not None:
                try:
                    # Each time: an empty group may have been swept away.
                    self._group.make(self._limits)
                    stack.enter_context(self._group.joined())
                except OSError as failure:
                    sys.stderr.write(f"The run has no limits of memory and processes: {failure}\n")
            yield

    def close(self, message: str) -> str:
        """Remove the group. Returns the message about the end of the run, with the limit that it reached."""
        if self._group is None:
            return message
        trouble = self._group.trouble(self._limits)
        self._group.remove()
        return f"{message} {trouble}".strip()


class StartReply(Enum):
    """A new runner's answer to the process that started it."""

    READY = "ready"
    """It holds the lock and its socket is open."""
    TAKEN = "taken"
    """Another living runner has this run."""
    OVER = "over"
    """The program was started before: it is never started twice."""
    FAILED = "failed"
    """It cannot run; a sentence follows."""


def serve(run_dir: Path, starter: int) -> None:
    """Be the runner of this run until its program has ended. `starter` is a pipe to the process that asked for it."""
    kernel.hide_memory()
    crash.reach(Point.RUNNER_RUN_BEFORE_LOCK)
    with gate(run_dir):
        run, answer, sentence = _open(run_dir)
    # The pipe is closed if the daemon died meanwhile; its successor adopts this run.
    with contextlib.suppress(BrokenPipeError):
        os.write(starter, f"{answer.value} {sentence}".encode())
    os.close(starter)
    if run is not None:
        run.to_the_end()


def _open(run_dir: Path) -> tuple[RunHost | None, StartReply, str]:
    """Take the run, or report why not. Called inside the gate."""
    folder = RunFolder(run_dir)
    try:
        held = files.lock(folder.lock)
    except files.AlreadyLocked:
        return None, StartReply.TAKEN, ""
    crash.reach(Point.RUNNER_RUN_AFTER_LOCK)
    begun = any(event.kind == JournalKind.STARTING.value for event in read_journal(run_dir))
    if begun or folder.result.exists():
        held.release()
        return None, StartReply.OVER, ""
    try:
        spec = read_spec(run_dir)
    except RunnerError as failure:
        held.release()
        return None, StartReply.FAILED, str(failure)
    return RunHost(run_dir, spec, held), StartReply.READY, ""


class RunHost:
    """The runner as its driver sees it, and what happens around the driver."""

    def __init__(self, run_dir: Path, spec: RunSpec, held: files.Lock) -> None:
        self._run_dir = run_dir
        self._spec = spec
        self._lock = held
        self._scoped = False
        self._group = LimitedGroup(run_dir, spec.limits)
        self.asks = ControlServer(run_dir, spec.run)
        self._journal = Journal(run_dir, self.asks.ring)
        self.output = OutputFile(RunFolder(run_dir).output, spec.max_output_bytes, self._output_limited)
        self.deaths = Deaths()
        self._forwards: list[int] = []
        self._children: WeakSet[RunChild] = WeakSet()
        self._refusals: set[tuple[str, int]] = set()
        self._refusing = threading.Lock()
        self.program = spec.program
        self.options = spec.options
        self.timeout = spec.timeout
        self.grace = spec.grace
        self.record(JournalKind.OPENED.value, runner=os.getpid())

    def to_the_end(self) -> None:
        kernel.adopt_orphans()
        lock = RunFolder(self._run_dir).lock
        loops.watch(lock, lambda: loops.end_process(lock), every=_FOLDER_EVERY)
        if self._spec.lease is not None:
            lease.watch(self._spec.lease, RunFolder(self._run_dir).fenced)
        started_at = time.time()
        try:
            ending = self._drive()
        finally:
            tree.kill_children()
        self.output.close()
        ending = replace(ending, message=self._group.close(ending.message))
        self._finish(ending, started_at)

    def start(self, program: Program | None = None) -> Child:
        self._enter_scope()
        crash.reach(Point.RUNNER_PROGRAM_BEFORE_START)
        self._journal.append(JournalKind.STARTING)
        child = self._started(program or self.program)
        crash.reach(Point.RUNNER_PROGRAM_AFTER_START)
        first = tree.look(child.group)
        self.record(JournalKind.STARTED.value, pid=child.group, since=first.since if first else None)
        return child

    def cpu_seconds(self) -> float | None:
        return load.cpu_below(os.getpid())

    def open_viewers(self) -> ViewerServer:
        viewers = ViewerServer(self._run_dir)
        self.asks.people = viewers.people
        return viewers

    def start_aside(self, program: Program) -> Child:
        """It is no part of the run's own story: only its driver knows of it, and it ends with the runner."""
        self._enter_scope()
        return self._started(program)

    def forward(self, port: int) -> None:
        self._forwards.append(port)
        for child in self._children:
            child.forward(port)

    def _started(self, program: Program) -> RunChild:
        sandbox = self._spec.sandbox
        if sandbox is not None and sandbox.bridge is not None:
            bridge = replace(sandbox.bridge, forwards=(*sandbox.bridge.forwards, *self._forwards))
            sandbox = replace(sandbox, bridge=bridge)
        with self._group.joined():
            child = RunChild.start(program, sandbox, self._run_dir, self.deaths, self)
        self._children.add(child)
        return child

    def record(self, kind: str, **facts: object) -> None:
        """Record an event in the journal. A full disk must not end a working program, so an event that cannot be
        written is dropped.
        """
        try:
            self._journal.append(kind, **facts)
        except OSError as failure:
            # The log is on the same disk.
            with contextlib.suppress(OSError):
                sys.stderr.write(f"The event {kind!r} could not be written: {failure}\n")

    def _drive(self) -> Ending:
        if self._spec.sandbox is not None and self._spec.sandbox.shows(self._run_dir):
            message = "The sandbox would show the run's own folder to its program; list narrower folders."
            return Ending(outcome=EndKind.FAILED_TO_START, exit_code=None, message=message)
        try:
            chosen = registry.load(self._spec.driver, self._spec.kind)
        except StartFailed as missing:
            return Ending(outcome=EndKind.FAILED_TO_START, exit_code=None, message=str(missing))
        try:
            return chosen.run(self)
        except Exception as fault:  # any error of a driver is the run's end, with its reason, and no silent death
            return self._failed(fault)

    def _failed(self, fault: Exception) -> Ending:
        """Where the program never started, another start would fail as this one did."""
        told = traceback.format_exc()
        sys.stderr.write(told)
        self.output.write(told.encode("utf-8", "replace"))
        begun = any(event.kind == JournalKind.STARTING.value for event in read_journal(self._run_dir))
        outcome = EndKind.FAILED if begun else EndKind.FAILED_TO_START
        kind, words = type(fault).__name__, " ".join(str(fault).split())
        message = f"Legion's runner failed, which is a fault of Legion: {kind}{f': {words}' if words else ''}"
        return Ending(outcome=outcome, exit_code=None, message=message[:_LONGEST_FAULT])

    def _enter_scope(self) -> None:
        """Makes abstract host sockets and outside processes unreachable. The runner needs neither itself."""
        box = self._spec.sandbox
        if box is None or box.image is not None or box.walled or self._scoped:
            return
        self._scoped = True
        try:
            bwrap = find_bwrap()
        except SandboxMissing as missing:
            raise StartFailed(str(missing)) from missing
        if not is_setuid(bwrap):
            kernel.scope_self()

    def granted(self) -> tuple[NetworkPlace, ...]:
        """What the person has allowed since the run began."""
        with contextlib.suppress(OSError, ValueError):
            return parse_places(RunFolder(self._run_dir).granted.read_text().split())
        return ()

    def refused(self, host: str, port: int, why: str) -> None:
        """Each place once: a program that tries again and again must not fill the disk."""
        with self._refusing:
            if (host, port) not in self._refusals and len(self._refusals) < _MOST_REFUSALS:
                self._refusals.add((host, port))
                self.record(JournalKind.REFUSED.value, host=host, port=port, why=why)

    def _output_limited(self, why: str) -> None:
        self.record(JournalKind.OUTPUT_LIMIT.value, limit=self._spec.max_output_bytes, why=why)

    def _finish(self, ending: Ending, started_at: float) -> None:
        if self._spec.lease is not None and not lease.holds(self._spec.lease, RunFolder(self._run_dir).fenced):
            # The program was killed with the lease: that is no result of its own.
            os._exit(1)
        self.record(JournalKind.ENDED.value, outcome=ending.outcome.value, exit_code=ending.exit_code)
        result = RunResult(
            run=self._spec.run,
            outcome=ending.outcome,
            exit_code=ending.exit_code,
            started_at=started_at,
            ended_at=time.time(),
            output_bytes=self.output.printed,
            message=self._explained(ending),
            until=ending.until,
            denied=ending.denied,
        )
        crash.reach(Point.RUNNER_RESULT_BEFORE_WRITE)
        self._write(result)
        crash.reach(Point.RUNNER_RESULT_AFTER_WRITE)
        self.asks.close()
        self._lock.release()

    def _write(self, result: RunResult) -> None:
        """Without a result the run would count as lost and its program run again, so a full disk is waited out."""
        while True:
            try:
                write_result(self._run_dir, result)
                return
            except OSError as failure:
                if failure.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise
            time.sleep(_UNTIL_THERE_IS_ROOM)

    def _explained(self, ending: Ending) -> str:
        """A program that never started may have left bubblewrap's error in its output."""
        if ending.outcome is not EndKind.FAILED_TO_START or not self.output.printed:
            return ending.message
        lines = RunFolder(self._run_dir).output.read_text("utf-8", "replace").splitlines()
        return f"{ending.message} ({lines[-1]})" if lines else ending.message


def become(run_dir: Path, starter: int) -> None:
    """Turn this forked process into a runner: a session of its own, no terminal, its own log. Never returns."""
    code = 1
    try:
        os.setsid()
        # The background job of a shell ignores some of these, and so would every agent: none could be interrupted.
        for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        os.chdir("/")
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        log = os.open(RunFolder(run_dir).complaints, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        for handle, standard in ((nothing, 0), (log, 1), (log, 2)):
            os.dup2(handle, standard)
        serve(run_dir, starter)
        code = 0
    except BaseException:  # any error goes to the log: a forked process has no caller to raise it to
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(OSError):
            sys.stderr.flush()
        os._exit(code)


# The output of a program, kept in a file up to a limit: the beginning, and the last part of any length of output.

TAIL = 64 << 10


class OutputFile:
    """Memory stays small whatever the program prints. A full disk costs output, never the run."""

    def __init__(self, path: Path, limit: int, on_limit: Callable[[str], None]) -> None:
        self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._room = limit
        self._on_limit = on_limit
        self._over = False
        self._tail = bytearray()
        self._left_out = 0
        self.printed = 0

    def write(self, data: bytes) -> None:
        self.printed += len(data)
        if not self._over:
            kept = data[: self._room]
            self._room -= len(kept)
            data = data[len(kept) :]
            if not self._put(kept):
                return
            if not data:
                return
            self._over = True
            self._on_limit("the limit is reached; of the rest only the last part is kept")
        self._tail += data
        if len(self._tail) > 2 * TAIL:
            self._forget(len(self._tail) - TAIL)

    def close(self) -> None:
        """Add the last part, after a line that states how much is missing."""
        if len(self._tail) > TAIL:
            self._forget(len(self._tail) - TAIL)
        if self._left_out:
            self._put(f"\n[{self._left_out} bytes left out]\n".encode())
        self._put(bytes(self._tail))
        os.close(self._handle)

    def _forget(self, count: int) -> None:
        del self._tail[:count]
        self._left_out += count

    def _put(self, data: bytes) -> bool:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._handle, view) :]
        except OSError as failure:
            if not self._over:
                self._over = True
                self._on_limit(f"the file could not be written: {failure.strerror}")
            return False
        return True


if __name__ == "__main__":
    # Where a warmed process cannot be forked from, each runner is a fresh one that leaves its starter at once.
    if os.fork() == 0:
        become(Path(sys.argv[1]), int(sys.argv[2]))
