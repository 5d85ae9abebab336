"""The program of a run as its runner holds it: started in the sandbox, signalled as a group, swept away in the end."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from legion.drivers import Program, StartFailed
from legion.runner import container, seccomp, tree
from legion.runner.bridge import BridgeServer, NetworkBridge, PersonsWord
from legion.runner.container import PodmanMissing
from legion.runner.sandbox import START_FAILED, Sandbox, SandboxMissing, Wrapped, is_setuid, wrap
from legion.runner.spec import RunFolder
from legion.system import kernel


class Deaths:
    """Readable when a child process has ended: the kernel's SIGCHLD, turned into a byte in a pipe."""

    def __init__(self) -> None:
        self.awaited: set[int] = set()
        """Started programs whose end was not read yet."""
        self._read, write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(write, False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)

    def fileno(self) -> int:
        return self._read

    def forget(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while os.read(self._read, 4096):
                pass


class RunChild:
    """One started program. Inside a sandbox `group` is the first process of its pid namespace, else the program."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        *,
        output: BinaryIO,
        status: BinaryIO | None,
        deaths: Deaths,
        input: BinaryIO | None = None,
        errors: BinaryIO | None = None,
        terminal: bool = False,
    ) -> None:
        self._bridge: BridgeServer | None = None
        self._process = process
        self._status = status
        self._deaths = deaths
        self.output = output
        self.input = input
        self.errors = errors
        self._terminal = terminal
        self.group = process.pid
        deaths.awaited.add(process.pid)
        if status is not None:
            with contextlib.suppress(ValueError, KeyError):
                self.group = json.loads(status.readline())["child-pid"]
            os.set_blocking(status.fileno(), False)

    @staticmethod
    def start(
        program: Program, sandbox: Sandbox | None, scratch: Path, deaths: Deaths, person: PersonsWord
    ) -> RunChild:
        """Start the program. Raises StartFailed, except for what only shows once bubblewrap runs."""
        with contextlib.ExitStack() as ours:
            gate = container.Gate(scratch) if sandbox is not None and sandbox.image is not None else None
            status, said = _pipe(ours) if sandbox is not None and gate is None else (None, None)
            bridge = None if sandbox is None else sandbox.bridge
            waits, go = _talking(ours) if bridge is not None and gate is None else (None, None)
            ends = _terminal(ours) if program.terminal else _pipes(ours, program, scratch)
            try:
                filter = _filter(ours, sandbox)
                failure = _copy(ours, said) if sandbox is not None and sandbox.walled else None
                wrapped = _command(program, sandbox, scratch, status=said, failure=failure, filter=filter, block=waits)
                # A sandbox dies with its runner by itself once bubblewrap runs, and until then is known by its mark.
                bind = sandbox is None or gate is not None or is_setuid(wrapped.argv[0])
                first = _bind_to(os.getpid(), RunFolder(scratch).session) if bind else None
                process = subprocess.Popen(
                    wrapped.argv,
                    cwd=program.cwd if sandbox is None else "/",
                    env={**wrapped.env, **tree.mark(scratch)},
                    stdin=ends.stdin,
                    stdout=ends.stdout,
                    stderr=ends.stderr,
                    pass_fds=tuple(one.fileno() for one in (said, failure, filter, waits) if one is not None),
                    start_new_session=True,
                    # Without this function Python starts the program by vfork, which copies no page tables.
                    preexec_fn=_on_terminal(first) if program.terminal else first,
                )
                if not bind:
                    _record_session(process.pid, RunFolder(scratch).session)
            except (OSError, ValueError, subprocess.SubprocessError, SandboxMissing, PodmanMissing) as failure:
                raise StartFailed(f"The program {program.argv[0]!r} could not be started: {failure}") from failure
        first_inside = None if gate is None else gate.first(process, ends.errors or ends.output)
        for pipe in (ends.output, ends.input, ends.errors):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
        child = RunChild(
            process,
            output=ends.output,
            status=status,
            deaths=deaths,
            input=ends.input,
            errors=ends.errors,
            terminal=program.terminal,
        )
        if gate is not None:
            child.group, go = first_inside or child.group, gate.go
        if go is not None:
            child._open(bridge, go, person)
        return child

    def _open(self, bridge: NetworkBridge | None, go: BinaryIO, person: PersonsWord) -> None:
        """Let the program start once its network leads somewhere. Without that it never starts."""
        with go:
            try:
                if bridge is not None and self.group != self._process.pid:
                    self._bridge = BridgeServer(bridge, self.group, person)
                go.write(b"1\n")
            except OSError as failure:
                self.kill()
                self._process.wait()
                self._deaths.awaited.discard(self._process.pid)
                raise StartFailed(f"The sandbox has no network: {failure.strerror or failure}.") from failure

    def forward(self, port: int) -> None:
        """Let the program reach this port of the host's loopback, where it has a loopback of its own."""
        if self._bridge is not None:
            self._bridge.forward(port)

    def signal(self, number: int) -> None:
        try:
            os.killpg(self._foreground() if self._terminal else self.group, number)
        except ProcessLookupError:
            # The sandbox is still being built, or all is over: no instruction of the program is cut off.
            self.kill()

    def _foreground(self) -> int:
        """The processes that the terminal's keys reach: a shell puts each command into a group of its own."""
        try:
            return os.tcgetpgrp(self.output.fileno()) or self._process.pid
        except OSError:
            raise ProcessLookupError from None

    def kill(self) -> None:
        """A pid namespace dies with its first process; without one the rest is swept after the program's end."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.group, signal.SIGKILL)

    def poll(self) -> int | None:
        self._deaths.forget()
        tree.reap_orphans(self._deaths.awaited)
        code = self._process.poll()
        if code is None:
            return None
        self._deaths.awaited.discard(self._process.pid)
        if self._bridge is not None:
            self._bridge.close()
            self._bridge = None
        if self._status is not None:
            return self._exit_code_inside(code)
        return code if code >= 0 else 128 - code

    def sweep(self) -> None:
        others = self._deaths.awaited - {self._process.pid}
        if sys.platform != "linux" or others:
            self.signal(signal.SIGKILL)
        if not others:
            tree.kill_children()

    def _exit_code_inside(self, code: int) -> int:
        """bubblewrap reports an exit code only for a program that it really started."""
        assert self._status is not None
        for line in (self._status.read() or b"").splitlines():
            with contextlib.suppress(ValueError):
                told = json.loads(line)
                if START_FAILED in told:
                    break
                if "exit-code" in told:
                    return int(told["exit-code"])
        if code < 0:
            return 128 - code
        if code > 128:
            # bubblewrap reports that its first process was killed, which is no fault of the program.
            return code
        raise StartFailed("The sandbox could not start the program.")


def _filter(ours: contextlib.ExitStack, sandbox: Sandbox | None) -> BinaryIO | None:
    """The filter of system calls that the child gets and we then close; None where the sandbox has none."""
    program = seccomp.program() if sandbox is not None and sandbox.filtered and sandbox.image is None else None
    return None if program is None else ours.enter_context(os.fdopen(seccomp.handle(program), "rb"))


def _copy(ours: contextlib.ExitStack, handle: BinaryIO | None) -> BinaryIO | None:
    """One that bubblewrap does not know, and so does not close."""
    return None if handle is None else ours.enter_context(os.fdopen(os.dup(handle.fileno()), "wb", buffering=0))


def _command(program: Program, sandbox: Sandbox | None, folder: Path, **handles: BinaryIO | None) -> Wrapped:
    if sandbox is None:
        return Wrapped(argv=program.argv, env=program.env)
    given = {name: None if one is None else one.fileno() for name, one in handles.items()}
    unset, terminal = tuple(tree.mark(Path())), program.terminal
    return wrap(
        program.argv,
        sandbox,
        cwd=program.cwd,
        env=program.env,
        without=unset,
        terminal=terminal,
        folder=folder,
        **given,
    )


@dataclass(frozen=True, kw_only=True)
class _Ends:
    """What the child gets, and what stays ours."""

    stdin: BinaryIO
    stdout: BinaryIO
    stderr: BinaryIO
    output: BinaryIO
    input: BinaryIO | None
    errors: BinaryIO | None


def _pipes(ours: contextlib.ExitStack, program: Program, scratch: Path) -> _Ends:
    output, printed = _pipe(ours)
    errors, complained = _pipe(ours) if program.talks else (None, printed)
    stdin, input = _talking(ours) if program.talks else (ours.enter_context(_stdin(program, scratch)), None)
    return _Ends(stdin=stdin, stdout=printed, stderr=complained, output=output, input=input, errors=errors)


def _terminal(ours: contextlib.ExitStack) -> _Ends:
    """A terminal of its own. Two handles on our end, since each is closed by itself."""
    master, slave = os.openpty()
    theirs = ours.enter_context(os.fdopen(slave, "r+b", buffering=0))
    output = os.fdopen(master, "rb", buffering=0)
    input = os.fdopen(os.dup(master), "wb", buffering=0)
    return _Ends(stdin=theirs, stdout=theirs, stderr=theirs, output=output, input=input, errors=None)


def _pipe(ours: contextlib.ExitStack) -> tuple[BinaryIO, BinaryIO]:
    """The reading end, and the writing end that the child gets and we then close."""
    reading, writing = os.pipe()
    return os.fdopen(reading, "rb", buffering=0), ours.enter_context(os.fdopen(writing, "wb", buffering=0))


def _talking(ours: contextlib.ExitStack) -> tuple[BinaryIO, BinaryIO]:
    """The reading end that the child gets and we then close, and the writing end, which stays ours."""
    reading, writing = os.pipe()
    return ours.enter_context(os.fdopen(reading, "rb", buffering=0)), os.fdopen(writing, "wb", buffering=0)


def _stdin(program: Program, scratch: Path) -> BinaryIO:
    """A nameless copy of the file: through a handle on the file itself a program could write to it."""
    if program.stdin is None:
        return Path(os.devnull).open("rb")
    handle, name = tempfile.mkstemp(dir=scratch)
    Path(name).unlink()
    copy = os.fdopen(handle, "w+b")
    with program.stdin.open("rb") as original:
        shutil.copyfileobj(original, copy)
    copy.seek(0)
    return copy


class _bind_to:
    """Runs in the child before the program does: it dies with its runner, also if that is gone by now.

    A setuid bubblewrap does not until it has built its sandbox, so its session is recorded first.
    """

    def __init__(self, runner: int, session: Path) -> None:
        self._runner = runner
        self._session = session

    def __call__(self) -> None:
        kernel.die_with_parent(signal.SIGKILL)
        if os.getppid() != self._runner:
            os._exit(1)
        _record_session(os.getpid(), self._session)


class _on_terminal:
    """Runs in the child before the program does: its stdin becomes the terminal that controls its session."""

    def __init__(self, first: Callable[[], None] | None) -> None:
        self._first = first

    def __call__(self) -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        if self._first is not None:
            self._first()


def _record_session(pid: int, file: Path) -> None:
    process = tree.look(pid)
    if process is not None:
        file.write_text(f"{process.pid} {process.since}")
