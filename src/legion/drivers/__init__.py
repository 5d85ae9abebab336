"""Drivers: each runs one kind of agent program. Here is the seam between a driver and the runner that hosts it.

A driver runs in the runner's process, on its main thread, until its program has ended. It starts the program through
the host, which puts it into the sandbox; it may use any loop (select, asyncio), since everything it waits for has a
file descriptor. Drivers know nothing of locks, results, tickets or the daemon. The daemon's side is in `profile`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar, Protocol

from legion.domain.terminal import TerminalEnd, TerminalSize


class EndKind(Enum):
    """How a run ended, as its runner observed it."""

    EXITED = "exited"
    """The program exited by itself; the exit code says how."""
    FINISHED = "finished"
    """The agent reported that it is done. Only a claim."""
    FAILED = "failed"
    """The program reported an error, or its end cannot be interpreted; the message says which."""
    GAVE_UP = "gave-up"
    """The agent reported that it cannot do this; the message holds its reason."""
    INTERRUPTED = "interrupted"
    """A person interrupted it without a follow-up message. Its conversation can be resumed."""
    LIMITED = "limited"
    """The provider's usage limit or overload stopped it; `until` says when it may resume."""
    OUT_OF_BUDGET = "out-of-budget"
    """It spent its budget."""
    REFUSED = "refused"
    """The provider refused to serve it (key, model, access); a person has to fix that."""
    TIMED_OUT = "timed-out"
    """It was ended at its time limit."""
    STOPPED = "stopped"
    """A stop was requested."""
    FAILED_TO_START = "failed-to-start"
    """Not one instruction of the program ran."""


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program to start: argv (no shell), its complete environment, and a file for stdin or none."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    stdin: Path | None = None
    talks: bool = False
    """Its stdin stays open for the driver, and its stderr is separate from its stdout."""
    terminal: bool = False
    """It gets a terminal of its own for stdin, stdout and stderr, whose other end the driver reads and writes."""


@dataclass(frozen=True, kw_only=True)
class Ending:
    """The result of a driver. The exit code is as a shell shows it: 128 + n for signal n."""

    outcome: EndKind
    exit_code: int | None
    message: str
    until: float | None = None
    """When a limit ends, in seconds since 1970, where that is known."""
    denied: tuple[str, ...] = ()
    """The tools that the agent was denied, each once."""


@dataclass(frozen=True, kw_only=True)
class StopRequest:
    """End the program, with force after `grace` seconds (None: as the run's spec says)."""

    name: ClassVar[str] = "stop"
    grace: float | None


@dataclass(frozen=True, kw_only=True)
class TellRequest:
    """Deliver a message to the agent during its turn. The same id again is the same message."""

    name: ClassVar[str] = "tell"
    id: str
    text: str


@dataclass(frozen=True, kw_only=True)
class InterruptRequest:
    """Interrupt the agent as Ctrl-C does, and deliver a follow-up message. Without one the program exits."""

    name: ClassVar[str] = "interrupt"
    then: TellRequest | None = None


@dataclass(frozen=True, kw_only=True)
class PermissionAnswer:
    """Deliver a person's answer to a question of this run, by the question's id."""

    name: ClassVar[str] = "permit"
    question: str
    allowed: bool
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class TerminalInput:
    """What one viewer of a terminal did. Its size becomes the terminal's, so the last one that types decides."""

    size: TerminalSize
    keys: bytes = b""
    repaint: bool = False
    """It has just attached, and the program should draw its screen again."""


ControlRequest = StopRequest | InterruptRequest | TellRequest | PermissionAnswer


class StartFailed(Exception):
    """The program could not be started at all; the message says why."""


class Readable(Protocol):
    """A file descriptor to wait for with select or asyncio."""

    def fileno(self) -> int: ...


class ControlRequests(Readable, Protocol):
    """Requests that reach this run over its control socket."""

    def take(self) -> Sequence[ControlRequest]:
        """All requests since the last call; never blocks."""
        ...


class Child(Protocol):
    """The started program, with all processes that it starts."""

    @property
    def output(self) -> Readable:
        """Stdout and stderr, read without blocking; only stdout where `Program.talks`. The end of a terminal is an
        OSError.
        """
        ...

    @property
    def input(self) -> Readable | None:
        """Stdin, written without blocking, where `Program.talks` or `Program.terminal`."""
        ...

    @property
    def errors(self) -> Readable | None:
        """Stderr, read without blocking, where `Program.talks`."""
        ...

    def signal(self, number: int) -> None:
        """Signal the program's process group."""
        ...

    def kill(self) -> None:
        """SIGKILL the complete process tree."""
        ...

    def poll(self) -> int | None:
        """The exit code once the program has ended; raises StartFailed if it turns out that it never started."""
        ...

    def sweep(self) -> None:
        """After the end: kill the processes that the program left behind, and return when they are gone."""
        ...


class Output(Protocol):
    """The run's output file, limited in size."""

    def write(self, data: bytes) -> None: ...


class Viewers(Readable, Protocol):
    """Those that look at the run's terminal."""

    @property
    def watched(self) -> bool: ...

    def take(self) -> Sequence[TerminalInput]:
        """What they typed since."""
        ...

    def show(self, data: bytes) -> None:
        """Send this output to all of them, and keep the last of it for the next one."""
        ...

    def end(self, end: TerminalEnd) -> None: ...


class Host(Protocol):
    """The runner as the driver that it hosts sees it."""

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
        """Seconds between SIGINT and SIGKILL."""
        ...

    @property
    def program(self) -> Program:
        """The program of the run's spec."""
        ...

    @property
    def options(self) -> Mapping[str, Any]:
        """The driver's own part of the spec, as JSON has it."""
        ...

    def start(self, program: Program | None = None) -> Child:
        """Start the run's program, or the driver's variant of it, inside its sandbox. Raises StartFailed."""
        ...

    def cpu_seconds(self) -> float | None:
        """Processor time that the program's living processes have used; None where that is not known."""
        ...

    def open_viewers(self) -> Viewers:
        """Let viewers attach to the run's terminal."""

    def start_aside(self, program: Program) -> Child:
        """Start another program in a sandbox like that of the run's program, next to it. Raises StartFailed."""
        ...

    def forward(self, port: int) -> None:
        """Let the run's programs reach a port of this host's loopback, also where they have a loopback of their own."""
        ...

    def record(self, kind: str, **facts: object) -> None:
        """Append an event to the run's journal."""
        ...


class Driver(Protocol):
    """Runs one program from its start to its end, in a runner."""

    def run(self, host: Host) -> Ending: ...
