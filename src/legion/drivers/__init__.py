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
from typing import Any, ClassVar, Protocol


class EndKind(Enum):
    """How a run ended, as its runner saw it."""

    EXITED = "exited"
    """The program ended by itself; the exit code says how."""
    FINISHED = "finished"
    """It said that it is through. Only a claim."""
    FAILED = "failed"
    """It said that it broke, or its end cannot be understood; the message says which."""
    GAVE_UP = "gave-up"
    """It said that it cannot do this; the message holds its reason."""
    INTERRUPTED = "interrupted"
    """Somebody interrupted it and said nothing further. Its conversation can go on."""
    LIMITED = "limited"
    """The model's usage limit, or its overload, stopped it; `until` says when it may go on."""
    OUT_OF_BUDGET = "out-of-budget"
    """It spent what it was given."""
    REFUSED = "refused"
    """The provider would not serve it at all (key, model, access): nothing changes until a person mends that."""
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
    talks: bool = False
    """Its stdin stays open for the driver, and its stderr comes apart from its stdout."""


@dataclass(frozen=True, kw_only=True)
class Ending:
    """What a driver hands back. The exit code is as a shell shows it: 128 + n for signal n."""

    outcome: EndKind
    exit_code: int | None
    message: str
    until: float | None = None
    """When a limit ends, in seconds since 1970, where that is known."""
    denied: tuple[str, ...] = ()
    """The tools that the agent was denied, each once."""


@dataclass(frozen=True, kw_only=True)
class StopRequest:
    """Asked for: end the program, with force after `grace` seconds (None: as the run's spec says)."""

    name: ClassVar[str] = "stop"
    grace: float | None


@dataclass(frozen=True, kw_only=True)
class TellRequest:
    """Asked for: words for the agent, in the turn that it is in. The same id again is the same message."""

    name: ClassVar[str] = "tell"
    id: str
    text: str


@dataclass(frozen=True, kw_only=True)
class InterruptRequest:
    """Asked for: what Ctrl-C does, and what the agent is told then. Told nothing, it comes to its end."""

    name: ClassVar[str] = "interrupt"
    then: TellRequest | None = None


@dataclass(frozen=True, kw_only=True)
class PermissionAnswer:
    """Asked for: a person's answer to a question of this run, by the question's id."""

    name: ClassVar[str] = "permit"
    question: str
    allowed: bool
    why: str = ""


Ask = StopRequest | InterruptRequest | TellRequest | PermissionAnswer


class StartFailed(Exception):
    """The program could not be started at all; the message says why."""


class Readable(Protocol):
    """Something to wait for with select or asyncio."""

    def fileno(self) -> int: ...


class ControlRequests(Readable, Protocol):
    """What people and the daemon ask of this run, over its control socket."""

    def take(self) -> Sequence[Ask]:
        """Everything asked since the last call; never blocks."""
        ...


class Child(Protocol):
    """The started program, with all that it starts in turn."""

    @property
    def output(self) -> Readable:
        """Stdout and stderr, to be read without blocking; only stdout of a program that talks."""
        ...

    @property
    def input(self) -> Readable | None:
        """The stdin of a program that talks, to be written to without blocking."""
        ...

    @property
    def errors(self) -> Readable | None:
        """The stderr of a program that talks, to be read without blocking."""
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
    def asks(self) -> ControlRequests: ...

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

    @property
    def program(self) -> Program:
        """The program as the run's spec has it."""
        ...

    @property
    def options(self) -> Mapping[str, Any]:
        """What the spec tells this kind of driver beside the program; as JSON has it."""
        ...

    def start(self, program: Program | None = None) -> Child:
        """Start the run's program (or what the driver made of it) inside its sandbox. Raises StartFailed."""
        ...

    def record(self, kind: str, **facts: object) -> None:
        """Append an event to the run's journal."""
        ...


class Driver(Protocol):
    """Drives one program from its start to its end."""

    def run(self, host: Host) -> Ending: ...
