"""Process trees: their members, and how to make sure that none is left.

Inside a sandbox the kernel does this with the pid namespace; without one we go by parents, sessions and a variable,
which a program that tries hard can escape once its runner is gone. `probe` reports which of the two applies.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar


class _Source(Protocol):
    def fileno(self) -> int: ...


_S = TypeVar("_S", bound=_Source)
_PROC = Path("/proc")
_MARK = "LEGION_RUN"
_ROUNDS = 10
"""A process that was just being started is found in the next round."""


@dataclass(frozen=True, kw_only=True)
class Process:
    """One line of the process table. `since` (in kernel ticks) distinguishes a process from a later one with the same
    pid.
    """

    pid: int
    parent: int
    session: int
    since: int
    ticks: int
    """What it used of processors, with its children that have ended."""


def look(pid: int) -> Process | None:
    """The process with this pid, or None. None everywhere without /proc."""
    # Plain calls: the watchdog reads the complete process table this way.
    try:
        handle = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            content = os.read(handle, 4096)
        finally:
            os.close(handle)
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The program's name is in brackets and may itself hold brackets and blanks.
    fields = content.rpartition(b")")[2].split()
    if fields[0] in (b"Z", b"X"):
        return None
    ticks = sum(int(field) for field in fields[11:15])
    return Process(pid=pid, parent=int(fields[1]), session=int(fields[3]), since=int(fields[19]), ticks=ticks)


def everyone() -> list[Process]:
    """All living processes that we can see."""
    if not _PROC.is_dir():
        return []
    found = (look(int(name)) for name in os.listdir(_PROC) if name.isdigit())  # noqa: PTH208 (ten times as fast)
    return [process for process in found if process is not None]


def children() -> list[int]:
    """Our own children, adopted ones included; a short list even where the process table is long."""
    try:
        return [int(pid) for pid in (_PROC / f"self/task/{os.getpid()}/children").read_text().split()]
    except FileNotFoundError:
        return [process.pid for process in everyone() if process.parent == os.getpid()]


def kill_children() -> None:
    """Kill all our descendants and return when the last one is gone. We must have adopted orphans before.

    A process that loses its parent becomes our child and is killed in the next round.
    """
    with contextlib.suppress(ChildProcessError):
        while True:
            for pid in children():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            os.waitpid(-1, 0)


def reap_orphans(own: Collection[int]) -> None:
    """Reap dead children that we adopted, but leave our own children to their waiters."""
    if sys.platform != "linux":
        return
    with contextlib.suppress(ChildProcessError):
        while True:
            dead = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if dead is None or dead.si_pid in own:
                return
            os.waitpid(dead.si_pid, 0)


def end_remains(pid: int, since: int) -> None:
    """After a runner was killed: make sure that its program's first process and session are dead. Linux only, like the
    pidfd.
    """
    first = look(pid)
    if first is not None and first.since != since:
        return
    for process in everyone():
        if process.session == pid:
            _kill_and_wait(process.pid)


def mark(run_dir: Path) -> dict[str, str]:
    """A variable by which the processes of a run are known, whatever session they are in. Unset inside a sandbox."""
    return {_MARK: str(run_dir.absolute())}


def end_marked(run_dir: Path) -> None:
    """After a runner was killed: end what its program started. Agent programs give each tool a session of its own."""
    wanted = f"{_MARK}={run_dir.absolute()}".encode()
    for _ in range(_ROUNDS):
        found = [process.pid for process in everyone() if wanted in _environment(process.pid)]
        # An agent may have started the daemon that we are.
        found = [pid for pid in found if pid != os.getpid()]
        if not found:
            return
        for pid in found:
            _kill_and_wait(pid)


def readable(handle: int, seconds: float) -> bool:
    """Is there something to read within this time? Not select: that fails in a process with many files."""
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def first_readable(sources: Sequence[_S], seconds: float) -> _S | None:
    """The first of these with something to read, waiting at most so long."""
    poll = select.poll()
    for source in sources:
        poll.register(source.fileno(), select.POLLIN)
    ready = {handle for handle, _ in poll.poll(seconds * 1000)}
    return next((source for source in sources if source.fileno() in ready), None)


def _environment(pid: int) -> list[bytes]:
    """Its environment; empty for a process of another user."""
    try:
        return (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _kill_and_wait(pid: int) -> None:
    """Returns when the process is gone; for the first process of a pid namespace that is when all in it are gone."""
    with contextlib.suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        try:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            readable(handle, 5)
        finally:
            os.close(handle)
