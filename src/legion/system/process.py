"""Runs a short program and waits for it. Every subprocess except agents and checks (see `runner`) starts here."""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

_CAN_SPAWN = hasattr(os, "posix_spawn") and hasattr(os, "memfd_create")
_CHUNK = 1 << 16
_LOOK_EVERY = 0.5


class ProgramMissing(Exception):
    """The program is not installed or not on PATH."""


@dataclass(frozen=True, kw_only=True)
class FinishedProcess:
    """How a program ended. `code` is negative for a signal, as in subprocess."""

    argv: tuple[str, ...]
    code: int
    stdout: bytes
    stderr: bytes
    timed_out: bool = False

    @property
    def text(self) -> str:
        return self.stdout.decode("utf-8", "replace")

    @property
    def complaint(self) -> str:
        """The program's own text about its failure, for a person."""
        text = (self.stderr or self.stdout).decode("utf-8", "replace").strip()
        return text or f"exit code {self.code}"


def run(
    argv: Sequence[str | os.PathLike[str]],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    timeout: float | None = 600.0,
    idle: float | None = None,
    lingers: bool = False,
    source: Path | None = None,
    sink: Path | None = None,
) -> FinishedProcess:
    """Run to the end and collect the output. A timeout kills the program's process group.

    `source` and `sink`: the program reads that file, and writes into this one, which must not exist yet; nothing of
    either is held in memory.

    With `idle` it also ends a program of which no process has done anything for so many seconds: one that waits for a
    named pipe. With `lingers` only the program itself is waited for, not what it leaves running in the background. A
    program that is named by its path and needs no folder of its own starts at half the cost, and only such a one can be
    watched for `idle`.
    """
    command = tuple(os.fspath(one) for one in argv)
    if source is not None or sink is not None:
        with contextlib.ExitStack() as opened:
            given = subprocess.PIPE if source is None else opened.enter_context(source.open("rb"))
            goal = subprocess.PIPE if sink is None else opened.enter_context(sink.open("xb"))
            return _run(command, cwd, env, stdin, timeout, goal, subprocess.PIPE, given)
    if _CAN_SPAWN and not lingers and cwd is None and env is not None and command[0].startswith("/"):
        return _spawn(command, env, stdin, timeout, idle)
    if not lingers:
        return _run(command, cwd, env, stdin, timeout, subprocess.PIPE, subprocess.PIPE)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        ended = _run(command, cwd, env, stdin, timeout, out, err)
        for file in (out, err):
            file.seek(0)
        return replace(ended, stdout=out.read(), stderr=err.read())


def _run(
    command: tuple[str, ...],
    cwd: Path | None,
    env: Mapping[str, str] | None,
    stdin: bytes,
    timeout: float | None,
    out_to: int | IO[bytes],
    err_to: int | IO[bytes],
    given: int | IO[bytes] = subprocess.PIPE,
) -> FinishedProcess:
    try:
        child = subprocess.Popen(
            command,
            cwd=cwd,
            env=dict(env) if env is not None else None,
            stdin=given,
            stdout=out_to,
            stderr=err_to,
            start_new_session=True,
        )
    except FileNotFoundError as missing:
        if cwd is not None and not cwd.exists():
            raise
        raise ProgramMissing(command[0]) from missing
    try:
        out, err = child.communicate(stdin if given == subprocess.PIPE else None, timeout)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        out, err = child.communicate()
        return FinishedProcess(
            argv=command, code=child.returncode, stdout=out or b"", stderr=err or b"", timed_out=True
        )
    return FinishedProcess(argv=command, code=child.returncode, stdout=out or b"", stderr=err or b"")


def _spawn(
    command: tuple[str, ...], env: Mapping[str, str], stdin: bytes, timeout: float | None, idle: float | None
) -> FinishedProcess:
    """By posix_spawn. Every handle of ours is closed in the program, since Python makes none that is inherited."""
    reading, writing = os.pipe()
    # A file in memory needs no thread and no waiting on our side.
    errors = os.memfd_create("stderr")
    given = os.memfd_create("stdin") if stdin else os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            if stdin:
                _write_all(given, stdin)
                os.lseek(given, 0, os.SEEK_SET)
            pid = os.posix_spawn(
                command[0],
                command,
                env,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, handle, place) for place, handle in enumerate((given, writing, errors))
                ],
                setsid=True,
                setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),
            )
        except FileNotFoundError as missing:
            raise ProgramMissing(command[0]) from missing
        finally:
            os.close(writing)
            os.close(given)
        output, timed_out = _read_to_end(reading, pid, timeout, idle)
        _, status = os.waitpid(pid, 0)
        return FinishedProcess(
            argv=command,
            code=os.waitstatus_to_exitcode(status),
            stdout=output,
            stderr=_content(errors),
            timed_out=timed_out,
        )
    finally:
        os.close(reading)
        os.close(errors)


def _read_to_end(reading: int, pid: int, timeout: float | None, idle: float | None) -> tuple[bytes, bool]:
    """The output, and whether the time was up; the program is killed then."""
    deadline = math.inf if timeout is None else time.monotonic() + timeout
    watch = _IdleWatch(pid, math.inf if idle is None else idle)
    parts: list[bytes] = []
    waiting = select.poll()
    waiting.register(reading, select.POLLIN)
    timed_out = False
    while True:
        left = min(max(0.0, deadline - time.monotonic()), watch.look_every) * 1000
        if not waiting.poll(None if timed_out or left == math.inf else left):
            if time.monotonic() >= deadline or watch.is_idle():
                os.killpg(pid, signal.SIGKILL)
                timed_out = True
            continue
        part = os.read(reading, _CHUNK)
        if not part:
            return b"".join(parts), timed_out
        parts.append(part)


class _IdleWatch:
    """Whether a program and all its descendants have slept for some seconds, without any use of a processor."""

    def __init__(self, pid: int, seconds: float) -> None:
        self.look_every = math.inf if seconds == math.inf else min(seconds, _LOOK_EVERY)
        self._pid = pid
        self._seconds = seconds
        self._used: int | None = None
        self._since = 0.0

    def is_idle(self) -> bool:
        used = _used_while_asleep(self._pid)
        if used is None or used != self._used:
            self._used, self._since = used, time.monotonic()
        return used is not None and time.monotonic() - self._since >= self._seconds


def _used_while_asleep(pid: int) -> int | None:
    """Processor ticks of a process and its descendants; None where one of them runs or waits for a disk."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_bytes().split()
    except OSError:
        return None
    below = [_used_while_asleep(int(child)) for child in children]
    if fields[0] != b"S" or None in below:
        return None
    return sum(int(field) for field in fields[11:15]) + sum(used or 0 for used in below)


def _write_all(handle: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def _content(handle: int) -> bytes:
    os.lseek(handle, 0, os.SEEK_SET)
    parts: list[bytes] = []
    while part := os.read(handle, _CHUNK):
        parts.append(part)
    return b"".join(parts)
