"""The input of a run (spec.json) and its result (result.json). Both are versioned: different releases read them."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from legion.domain.errors import LegionError
from legion.domain.text import in_all, recorded, to_json
from legion.drivers import EndKind, Program, registry
from legion.drivers.profile import DriverProfile
from legion.runner.sandbox import Sandbox
from legion.system.cgroups import GroupLimits
from legion.system.files import write_atomic

VERSION = 1
DEFAULT_OUTPUT_BYTES = 256 << 20


class RunnerError(LegionError):
    """A run could not be started, reached or read.

    RunnerError
    ├── UnreadableSpec    spec.json is missing, damaged or of another version
    ├── RunnerFailed      the runner died or gave up before it was ready
    ├── RunnerSilent      the runner lives but does not answer
    └── RunNotStarted     this run was never started
    """


class UnreadableSpec(RunnerError):
    pass


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """Everything that a runner needs; it reads nothing from its environment."""

    run: str
    program: Program
    driver: str = registry.COMMAND
    kind: str = ""
    """What the runner loads for a described program; empty: the driver of that name."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The driver's own options besides the program, as JSON."""
    sandbox: Sandbox | None
    limits: GroupLimits = field(default_factory=GroupLimits)
    """Of all its processes together, where this machine can limit them."""
    timeout: float | None = None
    grace: float = 10.0
    max_output_bytes: int = DEFAULT_OUTPUT_BYTES
    lease: Path | None = None
    """On a machine of another head: the file that has to be renewed, or the program is ended; see `lease`."""

    @property
    def profile(self) -> DriverProfile:
        found = registry.find(self.driver, self.kind)
        assert found is not None, "read_spec refuses an unknown driver"
        return found


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """How a run ended. Times are seconds since 1970; the exit code is 128 + n for a program that signal n ended."""

    run: str
    outcome: EndKind
    exit_code: int | None
    started_at: float
    ended_at: float
    output_bytes: int
    message: str
    until: float | None = None
    """When a usage limit ends, where that is known."""
    denied: tuple[str, ...] = ()
    """The tools that the agent was denied. Results of earlier releases lack them."""

    @property
    def succeeded(self) -> bool:
        return self.outcome is EndKind.EXITED and self.exit_code == 0


@dataclass(frozen=True)
class RunFolder:
    """The files of one run. Only the runner writes here once the spec is there."""

    path: Path

    @property
    def spec(self) -> Path:
        return self.path / "spec.json"

    @property
    def journal(self) -> Path:
        return self.path / "journal.jsonl"

    @property
    def output(self) -> Path:
        return self.path / "output.log"

    @property
    def lock(self) -> Path:
        return self.path / "lock"

    @property
    def result(self) -> Path:
        return self.path / "result.json"

    @property
    def session(self) -> Path:
        """Pid and start time of the process that became the program or its sandbox."""
        return self.path / "session"

    @property
    def elsewhere(self) -> Path:
        """There where the run is on another machine: the process numbers in its journal are not of this one."""
        return self.path / "elsewhere.json"

    @property
    def fenced(self) -> Path:
        """There when the head has given the run away: its program may not work on, whatever the lease says."""
        return self.path / "fenced"

    @property
    def granted(self) -> Path:
        """Hosts that a person allowed while it ran, a line each; see `egress`."""
        return self.path / "granted"

    @property
    def complaints(self) -> Path:
        """The runner's own error output."""
        return self.path / "runner.log"


CONTROL_SOCKET = "control.sock"
TERMINAL_SOCKET = "terminal.sock"
"""There while the program of the run has a terminal; see `viewers`."""


def write_spec(run_dir: Path, spec: RunSpec) -> None:
    """Prepare a run's folder. Nothing runs yet."""
    run_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    program = spec.program
    facts = {
        "version": VERSION,
        "run": spec.run,
        "driver": spec.driver,
        "kind": spec.kind,
        "options": dict(spec.options),
        "argv": list(program.argv),
        "cwd": str(program.cwd),
        "env": dict(program.env),
        "stdin": None if program.stdin is None else str(program.stdin),
        "terminal": program.terminal,
        "timeout": spec.timeout,
        "grace": spec.grace,
        "sandbox": None if spec.sandbox is None else spec.sandbox.to_json(),
        "max_output_bytes": spec.max_output_bytes,
        "limits": asdict(spec.limits),
        "lease": None if spec.lease is None else str(spec.lease),
    }
    write_atomic(RunFolder(run_dir).spec, json.dumps(facts, indent=1))


def read_spec(run_dir: Path) -> RunSpec:
    """The spec of a run. The same file is parsed once: several steps of a run need it."""
    try:
        found = RunFolder(run_dir).spec.stat()
    except OSError:
        return _parse_spec(run_dir)
    return _parsed_spec(run_dir, found.st_ino, found.st_mtime_ns, found.st_size)


@functools.lru_cache(maxsize=64)
def _parsed_spec(run_dir: Path, _number: int, _changed: int, _size: int) -> RunSpec:
    return _parse_spec(run_dir)


def _parse_spec(run_dir: Path) -> RunSpec:
    facts = _read(RunFolder(run_dir).spec)
    if "driver" in facts and not registry.is_known(facts["driver"], facts.get("kind", "")):
        raise UnreadableSpec(
            f"The spec in {run_dir} needs the driver {facts['driver']!r}, unknown here; update Legion."
        )
    try:
        program = Program(
            argv=tuple(facts["argv"]),
            cwd=Path(facts["cwd"]),
            env=dict(facts["env"]),
            stdin=None if facts["stdin"] is None else Path(facts["stdin"]),
            # A daemon of the last release does not write it.
            terminal=facts.get("terminal") is True,
        )
        return RunSpec(
            run=facts["run"],
            program=program,
            driver=facts["driver"],
            # A daemon of the last release does not write it.
            kind=facts.get("kind", ""),
            options=facts.get("options", {}),
            sandbox=None if facts["sandbox"] is None else Sandbox.from_json(facts["sandbox"]),
            timeout=facts["timeout"],
            grace=facts["grace"],
            max_output_bytes=facts["max_output_bytes"],
            # A daemon of the last release does not write them.
            limits=GroupLimits(**facts.get("limits", {})),
            lease=None if facts.get("lease") is None else Path(facts["lease"]),
        )
    except (KeyError, ValueError, TypeError) as wrong:
        raise UnreadableSpec(f"The spec in {run_dir} is damaged ({wrong!r}); start the run again.") from wrong


def write_result(run_dir: Path, result: RunResult) -> None:
    facts = {
        "version": VERSION,
        "run": result.run,
        "outcome": result.outcome.value,
        "exit_code": result.exit_code,
        "started_at": result.started_at,
        "ended_at": result.ended_at,
        "output_bytes": result.output_bytes,
        "message": result.message,
        "until": result.until,
        "denied": list(result.denied),
    }
    write_atomic(RunFolder(run_dir).result, to_json(in_all(facts, recorded), indent=1))


def read_result(run_dir: Path) -> RunResult | None:
    """The result, or None while there is none."""
    path = RunFolder(run_dir).result
    if not path.exists():
        return None
    return parse_result(_read(path))


def parse_result(facts: Mapping[str, Any]) -> RunResult:
    """Raises UnreadableSpec for another version, and KeyError or ValueError for what is no result."""
    if facts.get("version") != VERSION:
        raise UnreadableSpec(
            f"A result of version {facts.get('version')}, this release reads {VERSION}; update Legion."
        )
    return RunResult(
        run=facts["run"],
        outcome=EndKind(facts["outcome"]),
        exit_code=facts["exit_code"],
        started_at=facts["started_at"],
        ended_at=facts["ended_at"],
        output_bytes=facts["output_bytes"],
        message=recorded(facts["message"]),
        until=facts.get("until"),
        denied=tuple(map(recorded, facts.get("denied", ()))),
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        facts = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise UnreadableSpec(f"There is no {path.name} in {path.parent}; write the spec before starting.") from None
    except ValueError as wrong:
        raise UnreadableSpec(f"{path} is not JSON ({wrong}); start the run again.") from wrong
    version = facts.get("version") if isinstance(facts, dict) else None
    if version != VERSION:
        raise UnreadableSpec(f"{path} has version {version}, this release reads {VERSION}; update Legion.")
    return dict(facts)
