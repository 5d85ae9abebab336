"""Starts the daemon in the background, once however many ask, and waits until it is ready; ends it again.

The daemon gets the write end of a pipe in LEGION_READY_FD and says `ready` or `error: <sentence>` there, once.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from legion.client.discovery import find, is_remote, read_record
from legion.client.http import NotRunning
from legion.client.legion import Legion
from legion.system.paths import DataDir
from legion.wire.errors import LegionError, NotAllowed, Retryable, kind_of

PATIENCE = 60.0
"""Seconds to wait for a start or an end; both take one or two."""
_SEEING_OFF = 2.0
_LAST_MOMENTS = 10.0
"""Seconds that a process may take to end, or another to answer, after it reported that it would."""


def start(data_dir: Path) -> Legion:
    """Start a daemon for this folder. Of several that ask at once one starts it and the others find it."""
    folder = _prepared(data_dir)
    with _held(folder.root / "start.lock"):
        try:
            return find(data_dir)
        except NotRunning:
            launched = _launch(folder)
        if launched.report == "ready":
            return find(data_dir)
        return _find_other(data_dir, launched)


def stop(data_dir: Path) -> bool:
    """End the daemon and wait until it is gone. False if there was none."""
    record = read_record(data_dir)
    lock = DataDir(data_dir).daemon_lock
    try:
        find(data_dir).shutdown()
    except NotRunning:
        if is_remote() or not _end_unlisted(lock):
            return False
    if is_remote():
        return True
    deadline = time.monotonic() + PATIENCE
    while _is_held(lock):
        if time.monotonic() > deadline:
            raise Retryable(f"Legion is still busy ending after {PATIENCE:.0f} s; read {DataDir(data_dir).daemon_log}.")
        # A lock cannot be waited for with a deadline.
        select.select([], [], [], 0.02)
    if record is not None:
        _see_off(record.pid)
    return True


def _end_unlisted(lock: Path) -> bool:
    """End a daemon that holds the folder and cannot be asked: its daemon.json or its token is gone or damaged.

    False where there is none: one that is just ending has time to do so.
    """
    deadline = time.monotonic() + _SEEING_OFF
    while _is_held(lock):
        if time.monotonic() > deadline:
            pid = lock.read_text().strip()
            if not pid.isdecimal() or not _is_legion(int(pid)):
                raise Retryable(f"Another process holds {lock} and does not answer: `fuser {lock}` shows which one.")
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGTERM)
            return True
        select.select([], [], [], 0.02)
    return False


def _is_legion(pid: int) -> bool:
    """An earlier release writes no pid, so that of its predecessor may belong to any program by now."""
    if sys.platform != "linux":
        return True
    try:
        return b"legion" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _see_off(pid: int) -> None:
    """Its lock is free a moment before the process is gone. Where that cannot be waited for, nothing is lost."""
    if sys.platform != "linux":
        return
    try:
        process = os.pidfd_open(pid)
    except OSError:
        return
    try:
        select.select([process], [], [], _SEEING_OFF)
    finally:
        os.close(process)


def _prepared(data_dir: Path) -> DataDir:
    folder = DataDir(data_dir)
    try:
        folder.prepare()
    except OSError as error:
        raise NotAllowed(
            f"Legion cannot use {data_dir} as its data directory ({error.strerror}); name another with --data-dir."
        ) from None
    return folder


@dataclass(frozen=True, kw_only=True)
class _Launched:
    report: str
    """The new daemon's report about its start; empty if it died without one."""
    exit_code: int | None
    """None where it runs."""


def _launch(folder: DataDir) -> _Launched:
    ours, theirs = os.pipe()
    with os.fdopen(ours, "rb", buffering=0) as reading, open(folder.daemon_log, "ab", opener=_for_me_alone) as log:
        try:
            child = start_process(folder.root, ready=theirs, log=log.fileno())
        finally:
            os.close(theirs)
        # It outlives us; if we outlive it, it must not stay behind as a zombie.
        reaper = threading.Thread(target=child.wait, daemon=True, name="reaper")
        reaper.start()
        report = b""
        deadline = time.monotonic() + PATIENCE
        while not report.endswith(b"\n"):
            if not select.select([reading], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise Retryable(f"Legion did not start within {PATIENCE:.0f} s; read {folder.daemon_log}.")
            piece = reading.read(4096)
            if not piece:
                break
            report += piece
    line = report.decode("utf-8", "replace").strip()
    if line != "ready":
        reaper.join(_LAST_MOMENTS)
    return _Launched(report=line, exit_code=child.poll())


class DaemonProcess(Protocol):
    """What is needed of the process that was started."""

    def wait(self) -> int: ...

    def poll(self) -> int | None: ...


def start_process(data_dir: Path, *, ready: int, log: int) -> DaemonProcess:
    """Start the daemon as a session of its own that inherits `ready` and writes to `log`."""
    return subprocess.Popen(
        [sys.executable, "-m", "legion.daemon", "--data-dir", str(data_dir)],
        cwd=data_dir,
        env={**os.environ, "LEGION_READY_FD": str(ready)},
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        pass_fds=[ready],
        start_new_session=True,
    )


def _for_me_alone(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _find_other(data_dir: Path, launched: _Launched) -> Legion:
    """Our daemon gave way or failed. If another one holds the folder it may need a moment until it answers."""
    deadline = time.monotonic() + _LAST_MOMENTS
    while _is_held(DataDir(data_dir).daemon_lock) and time.monotonic() < deadline:
        try:
            return find(data_dir)
        except NotRunning:
            select.select([], [], [], 0.05)
    sentence = launched.report.removeprefix("error:").strip()
    if not sentence:
        log = DataDir(data_dir).daemon_log
        raise LegionError(f"Legion died while it started; the last lines of {log} say why.")
    raise kind_of(launched.exit_code or LegionError.exit_code)(sentence)


@contextmanager
def _held(path: Path) -> Iterator[None]:
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _is_held(path: Path) -> bool:
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(handle)
