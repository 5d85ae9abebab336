"""The drivers by name: those with code of their own, and the described agent programs.

A new kind of driver is a folder (or module) in this package and a line here; a new program is a TOML file.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from legion.drivers import (
    Child,
    ControlRequest,
    Driver,
    Ending,
    EndKind,
    Host,
    InterruptRequest,
    Program,
    StartFailed,
    StopRequest,
)
from legion.drivers.claude.profile import ClaudeProfile
from legion.drivers.profile import Capabilities, DriverProfile, PreparedRun, RunRequest
from legion.drivers.programs import catalog
from legion.drivers.programs.description import DriverKind, ProgramDescription, ProgramPart
from legion.drivers.terminal.profile import TerminalProfile
from legion.drivers.turns import profile
from legion.system import files

CHUNK = 1 << 16


def briefed(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], briefing: Path) -> Program:
    """An agent's program: the briefing on stdin and in the file named by LEGION_BRIEFING (make it readable inside)."""
    return Program(argv=tuple(argv), cwd=cwd, env={**env, "LEGION_BRIEFING": str(briefing)}, stdin=briefing)


class CommandProfile(DriverProfile):
    """No capability at all: the program reads its briefing, works and exits."""

    name: str = "command"
    title: str = "a plain program"
    needs_command: bool = True

    def load(self) -> Driver:
        return CommandDriver()

    def prepare(self, request: RunRequest) -> PreparedRun:
        file = request.given / "briefing.md"
        text = f"{request.input.rules}\n\n{request.input.prompt}" if request.input.rules else request.input.prompt
        files.write_atomic(file, text, mode=0o644)
        return PreparedRun(program=briefed(request.argv, cwd=request.tree, env=request.env, briefing=file))


class CommandDriver:
    """Starts the program, keeps what it prints, and ends it on request or at its time limit."""

    def run(self, host: Host) -> Ending:
        try:
            child = host.start()
        except StartFailed as failure:
            return Ending(outcome=EndKind.FAILED_TO_START, exit_code=None, message=str(failure))
        return _Supervision(host, child).run_to_end()


class _Supervision:
    """One select loop over the program's output, its end, control requests and deadlines."""

    def __init__(self, host: Host, child: Child) -> None:
        self._host = host
        self._child = child
        self._ending: EndKind | None = None
        self._timeout_at = None if host.timeout is None else time.monotonic() + host.timeout
        self._term_at: float | None = None
        self._kill_at: float | None = None

    def run_to_end(self) -> Ending:
        code: int | None = None
        failure: StartFailed | None = None
        with selectors.DefaultSelector() as selector:
            for source in (self._child.output, self._host.asks, self._host.deaths):
                selector.register(source, selectors.EVENT_READ)
            while code is None and failure is None:
                for key, _ in selector.select(self._until_deadline()):
                    if key.fileobj is self._child.output and not self._read_output():
                        selector.unregister(self._child.output)
                    elif key.fileobj is self._host.asks:
                        for ask in self._host.asks.take():
                            self._handle(ask)
                self._check_deadlines()
                try:
                    code = self._child.poll()
                except StartFailed as never:
                    failure = never
        self._child.sweep()
        while self._read_output():
            pass
        return self._make_ending(code, failure)

    def _until_deadline(self) -> float | None:
        """Seconds until the next deadline."""
        moments = [moment for moment in (self._timeout_at, self._term_at, self._kill_at) if moment is not None]
        return max(0.0, min(moments) - time.monotonic()) if moments else None

    def _read_output(self) -> bool:
        """Read what is available; False at the end of the output, or when nothing is available now."""
        try:
            data = os.read(self._child.output.fileno(), CHUNK)
        except BlockingIOError:
            return False
        self._host.output.write(data)
        return bool(data)

    def _handle(self, ask: ControlRequest) -> None:
        if isinstance(ask, InterruptRequest):
            self._host.record("interrupted")
            self._child.signal(signal.SIGINT)
            return
        if not isinstance(ask, StopRequest):
            self._host.record("not-heard", ask=ask.name)
            return
        grace = self._host.grace if ask.grace is None else ask.grace
        self._host.record("stopping", grace=grace)
        self._start_ending(EndKind.STOPPED, grace)

    def _start_ending(self, why: EndKind, grace: float) -> None:
        """SIGINT now, SIGTERM after half of the grace, SIGKILL at its end; another request can only shorten it."""
        now = time.monotonic()
        if self._ending is None:
            self._ending = why
            self._timeout_at = None
            self._term_at = now + grace / 2
            self._kill_at = now + grace
            self._child.signal(signal.SIGINT)
        elif self._kill_at is not None and now + grace < self._kill_at:
            self._kill_at = now + grace

    def _check_deadlines(self) -> None:
        now = time.monotonic()
        if self._timeout_at is not None and now >= self._timeout_at:
            self._host.record("out-of-time", timeout=self._host.timeout)
            self._start_ending(EndKind.TIMED_OUT, self._host.grace)
        if self._term_at is not None and now >= self._term_at:
            self._term_at = None
            self._child.signal(signal.SIGTERM)
        if self._kill_at is not None and now >= self._kill_at:
            self._kill_at = None
            self._child.kill()

    def _make_ending(self, code: int | None, failure: StartFailed | None) -> Ending:
        if self._ending is EndKind.STOPPED:
            return Ending(outcome=EndKind.STOPPED, exit_code=code, message="The run was stopped as asked.")
        if self._ending is EndKind.TIMED_OUT:
            message = f"The program was ended because its limit of {self._host.timeout:g} s had passed."
            return Ending(outcome=EndKind.TIMED_OUT, exit_code=code, message=message)
        if failure is not None:
            return Ending(outcome=EndKind.FAILED_TO_START, exit_code=None, message=str(failure))
        return Ending(outcome=EndKind.EXITED, exit_code=code, message=f"The program ended with exit code {code}.")


PROFILES: dict[str, DriverProfile] = {one.name: one for one in (CommandProfile(), TerminalProfile(), ClaudeProfile())}
"""The drivers with code of their own."""
COMMAND = CommandProfile.name
"""Runs any command line: agents that only read their briefing, and every check."""
TERMINAL = TerminalProfile.name
"""Runs any interactive program in a terminal that people attach to."""
DEFAULT = ClaudeProfile.name
"""The driver of standing agents, and of tickets where neither ticket, project nor settings name one."""

_KINDS = {kind.value: kind for kind in DriverKind}
_described: dict[str, tuple[ProgramDescription, DriverProfile]] = {}


def default() -> DriverProfile:
    return PROFILES[DEFAULT]


def profiles() -> Mapping[str, DriverProfile]:
    """All drivers. The person may add programs while the daemon runs."""
    return {**{name: _profile(one) for name, one in catalog.programs().found.items()}, **PROFILES}


def find(name: str, kind: str = "") -> DriverProfile | None:
    """The driver of this name; where its file is gone, what every program of its kind can do."""
    if name in PROFILES:
        return PROFILES[name]
    program = catalog.programs().found.get(name)
    if program is None and kind in _KINDS:
        program = ProgramDescription(
            name=name, title=name, driver=_KINDS[kind], program=ProgramPart(run=(name,), version=())
        )
    return None if program is None else _profile(program)


def _profile(program: ProgramDescription) -> DriverProfile:
    known = _described.get(program.name)
    if known is None or known[0] != program:
        known = _described[program.name] = (program, profile.DescribedProfile(program))
    return known[1]


def built_in() -> tuple[str, ...]:
    """The drivers that need no settings: their names can be chosen as they are."""
    return tuple(name for name, one in profiles().items() if not one.needs_command)


def that_can(capability: Callable[[Capabilities], bool]) -> tuple[str, ...]:
    """Drivers with this capability to advise a person to: those that come with Legion, program and all."""
    return tuple(name for name, one in PROFILES.items() if not one.needs_command and capability(one.capabilities))


def is_known(name: str, kind: str = "") -> bool:
    """Whether a runner can load it."""
    return kind in _KINDS or find(name) is not None


def load(name: str, kind: str = "") -> Driver:
    """The driver for a runner. Raises StartFailed where what it needs is not installed."""
    try:
        if kind in _KINDS:
            return profile.load(_KINDS[kind])
        return PROFILES[name].load()
    except ImportError as missing:
        raise StartFailed(f"The driver {name} cannot be used ({missing}): install Legion again.") from missing


def warm() -> None:
    """Import what every driver needs, so that processes forked from this one need not."""
    for one in PROFILES.values():
        # A run that needs the missing library reports it.
        with contextlib.suppress(ImportError):
            one.warm()
    with contextlib.suppress(ImportError):
        profile.load(DriverKind.ACP)
