"""Drivers: how one kind of agent program is driven, and the seam between a driver and the runner that hosts it.

A driver runs in the runner's process, on its main thread, until its program has ended. It starts the program through
the host, which puts it into the sandbox; it may run any loop it likes (select, asyncio), since everything it waits for
has a file descriptor. Drivers know nothing of locks, results, tickets or the daemon.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Protocol


class Outcome(Enum):
    """How a run ended, as its runner saw it."""

    EXITED = "exited"
    """The program ended by itself; the exit code says how."""
    TIMED_OUT = "timed-out"
    """Its time limit passed and it was ended."""
    STOPPED = "stopped"
    """Somebody asked for the end."""
    FAILED_TO_START = "failed-to-start"
    """Not one instruction of the program ran."""


@dataclass(frozen=True, kw_only=True)
class Program:
    """What to run: argv as it is (no shell), the whole environment, and a file for stdin or none."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    stdin: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Ending:
    """What a driver hands back. The exit code is as a shell shows it: 128 + n for signal n."""

    outcome: Outcome
    exit_code: int | None
    message: str


@dataclass(frozen=True, kw_only=True)
class Stop:
    """Asked for: end the program, with force after `grace` seconds (None: as the run's spec says)."""

    grace: float | None


@dataclass(frozen=True, kw_only=True)
class Interrupt:
    """Asked for: what Ctrl-C does. The program decides what follows."""


Ask = Stop | Interrupt


class StartFailed(Exception):
    """The program could not be started at all; the message says why."""


class Readable(Protocol):
    """Something to wait for with select or asyncio."""

    def fileno(self) -> int: ...


class Asks(Readable, Protocol):
    """What people and the daemon ask of this run, over its control socket."""

    def take(self) -> Sequence[Ask]:
        """Everything asked since the last call; never blocks."""
        ...


class Child(Protocol):
    """The started program, with all that it starts in turn."""

    @property
    def output(self) -> Readable:
        """Stdout and stderr, to be read without blocking."""
        ...

    def signal(self, number: int) -> None:
        """Signal the program's process group."""
        ...

    def kill(self) -> None:
        """SIGKILL the whole tree."""
        ...

    def poll(self) -> int | None:
        """The exit code once the program has ended; raises StartFailed if it turns out that it never began."""
        ...

    def sweep(self) -> None:
        """After the end: kill whatever the program left behind, and return when it is gone."""
        ...


class Output(Protocol):
    """The run's output file, with its limit."""

    def write(self, data: bytes) -> None: ...


class Host(Protocol):
    """What the runner gives to the driver that it hosts."""

    @property
    def asks(self) -> Asks: ...

    @property
    def deaths(self) -> Readable:
        """Readable when a child process has ended."""
        ...

    @property
    def output(self) -> Output: ...

    @property
    def timeout(self) -> float | None:
        """Seconds that the program may run."""
        ...

    @property
    def grace(self) -> float:
        """Seconds between the first polite signal and SIGKILL."""
        ...

    def start(self) -> Child:
        """Start the run's program inside its sandbox and journal it. Raises StartFailed."""
        ...

    def record(self, kind: str, **facts: object) -> None:
        """Append an event to the run's journal."""
        ...


class Driver(Protocol):
    """Drives one program from its start to its end."""

    def run(self, host: Host) -> Ending: ...
