"""A temporary Legion in one folder: data, settings, a scripted provider and the processes.

The person's own Legion is neither read nor changed, and no process stays. Independent of tickets and repositories.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import legion
from legion.cli.base.output import progress
from legion.client import start
from legion.client.discovery import find
from legion.client.legion import Legion
from legion.gateway import lifecycle
from legion.gateway.files.folder import GatewayFolder
from legion.rehearsal import process
from legion.rehearsal.process import Playing
from legion.system import files
from legion.system.paths import DataDir
from legion.wire.errors import LegionError, Retryable
from legion.wire.projects import Doctor, Where

PROVIDER = "rehearsal"
DRIVER = "claude"
_CLAUDE = "Claude Code"
"""Its name in the findings of `legion doctor`."""
_PORT, _GATEWAY_PORT = 16666, 16671
"""Different from the person's own Legion; where one is in use, the next free one is taken."""
_SLOTS = 32
_GRACE = 15.0
"""Seconds that agents get to end."""
_POLL = 0.05

_PROVIDERS = """\
# The scripted model. It accepts any key; this one is worthless elsewhere.
[{provider}]
url = "{url}"
key_file = "{key}"
"""

_SHORTCUT = """\
#!/bin/sh
# The command `legion` with the data and the settings of this folder.
export LEGION_DATA_DIR={data} LEGION_CONFIG={settings} PYTHONPATH={source}
unset LEGION_URL LEGION_TOKEN
exec {python} -P -m legion "$@"
"""


@dataclass(frozen=True)
class Scratch:
    folder: Path

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def settings(self) -> Path:
        return self.folder / "config.toml"

    @property
    def providers(self) -> Path:
        return self.folder / "providers.toml"

    @property
    def key(self) -> Path:
        return self.folder / "key"

    @property
    def shortcut(self) -> Path:
        """A command `legion` for this folder, for later inspection."""
        return self.folder / "legion"

    @property
    def gateway(self) -> GatewayFolder:
        return GatewayFolder(DataDir(self.data).gateway)

    def prepare(
        self, more_settings: str = "", *, slots: int | None = None, permission_mode: str = "acceptEdits"
    ) -> None:
        """Write the settings. `slots`: agents in parallel; None: as many as the project allows."""
        settings = (
            Path(__file__)
            .with_name("settings.toml")
            .read_text("utf-8")
            .format(
                port=_PORT,
                gateway_port=_GATEWAY_PORT,
                slots=slots or _SLOTS,
                provider=PROVIDER,
                permission_mode=permission_mode,
            )
        )
        self.settings.write_text(f"{settings}\n{more_settings}", "utf-8")
        files.write_atomic(self.key, "scripted-and-worth-nothing\n", mode=0o600)
        values = {
            "data": self.data,
            "settings": self.settings,
            "source": Path(legion.__file__).parent.parent,
            "python": sys.executable,
        }
        self.shortcut.write_text(_SHORTCUT.format(**{name: shlex.quote(str(value)) for name, value in values.items()}))
        self.shortcut.chmod(0o755)

    def use(self) -> None:
        """Make this process and those it starts use this folder instead of the person's own Legion."""
        for name in ("LEGION_URL", "LEGION_TOKEN", "LEGION_DATA_DIR"):
            os.environ.pop(name, None)
        os.environ["LEGION_CONFIG"] = str(self.settings)


@dataclass(frozen=True, kw_only=True)
class ScratchLegion:
    """A running Legion, and the scripted model of its agents."""

    scratch: Scratch
    stage: Playing

    @property
    def legion(self) -> Legion:
        """A client of its daemon, which is started again if it was killed."""
        return start.start(self.scratch.data)


@contextmanager
def running_scratch(
    scratch: Scratch, scripts: Path, *, repository: Path, default: str | None = None, chaos: int | None = None
) -> Iterator[ScratchLegion]:
    """Run Legion and the scripted model during the block, and end all processes after it, in any case."""
    with _exit_on_signals(), process.playing(scripts, scratch.folder, default=default, chaos=chaos) as stage:
        scratch.providers.write_text(
            _PROVIDERS.format(provider=PROVIDER, url=stage.url, key=_escaped(scratch.key)), "utf-8"
        )
        try:
            with progress("Starting Legion"), _interrupts_after():
                start.start(scratch.data)
            yield ScratchLegion(scratch=scratch, stage=stage)
        finally:
            with progress("Ending Legion"):
                _end(scratch, repository)


def claude_version(doctor: Doctor) -> str:
    """The version of Claude Code. Raises LegionError where it is missing."""
    found = next((finding for finding in doctor.findings if finding.name == _CLAUDE), None)
    version = None if found is None else re.match(r"[0-9.]+", found.detail)
    if found is None or version is None:
        raise LegionError(found.detail if found is not None else "Legion does not know Claude Code: update Legion.")
    return version[0]


def runner_of(scratch: Scratch, ticket: int, run: int) -> int | None:
    """The runner's pid, from the journal of the run."""
    return _recorded_pid(_run_folder(scratch, ticket, run), "opened", "runner")


def agent_of(scratch: Scratch, ticket: int, run: int) -> int | None:
    """The first pid of its agent program, once that has started or resumed its conversation."""
    folder = _run_folder(scratch, ticket, run)
    talks = any(event["kind"] == "conversation" for event in _journal(folder))
    return _recorded_pid(folder, "started", "pid") if talks else None


def is_inside_a_tool(scratch: Scratch, ticket: int, run: int, text: str) -> bool:
    """Whether its agent has started a call whose input holds this text, and has stored it in its conversation."""
    started = any(
        event["kind"] == "begins" and text in str(event.get("input"))
        for event in _journal(_run_folder(scratch, ticket, run))
    )
    conversations = DataDir(scratch.data).projects.glob(f"*/agents/ticket-{ticket}/claude/projects/*/*.jsonl")
    return started and any(text in file.read_text("utf-8", "replace") for file in conversations)


def journal(scratch: Scratch, ticket: int, run: int) -> Iterator[dict[str, object]]:
    """The events of a run, as its runner recorded them."""
    return _journal(_run_folder(scratch, ticket, run))


def _run_folder(scratch: Scratch, ticket: int, run: int) -> Path:
    return DataDir(scratch.data).runs / f"ticket-{ticket}-run-{run}"


def _recorded_pid(folder: Path, kind: str, fact: str) -> int | None:
    return next((int(str(event[fact])) for event in _journal(folder) if event["kind"] == kind), None)


def _journal(folder: Path) -> Iterator[dict[str, object]]:
    """Whole lines only; the last may still be being written."""
    with suppress(FileNotFoundError):
        for line in (folder / "journal.jsonl").read_text().rpartition("\n")[0].splitlines():
            with suppress(ValueError):
                yield json.loads(line)


@contextmanager
def _exit_on_signals() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into an exit that unwinds like Ctrl-C, so that all processes are ended."""

    def end(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _interrupts_after() -> Iterator[None]:
    """Delay a Ctrl-C until the block has ended: a daemon that is still starting could not be found, to end it."""
    interrupted = threading.Event()
    before = signal.signal(signal.SIGINT, lambda *_: interrupted.set())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if interrupted.is_set():
        raise KeyboardInterrupt


def _end(scratch: Scratch, repository: Path) -> None:
    """End the agents first, so that the daemon can record how they ended; then the daemon and the gateway."""
    runs = DataDir(scratch.data).runs
    if _running(runs):
        with suppress(LegionError):
            find(scratch.data).stop_all(Where(cwd=str(repository)))
    _wait_or_kill(runs)
    with suppress(Retryable):
        start.stop(scratch.data)
    # One may have started at the last moment.
    _wait_or_kill(runs)
    with suppress(Retryable):
        lifecycle.end(scratch.gateway)


def _running(runs: Path) -> list[Path]:
    return [lock.parent for lock in runs.glob("*/lock") if files.is_locked(lock)]


def _wait_or_kill(runs: Path) -> None:
    """Wait until no runner is left; kill those that take too long."""
    deadline = time.monotonic() + _GRACE
    while running := _running(runs):
        if time.monotonic() > deadline:
            for folder in running:
                pid = _recorded_pid(folder, "opened", "runner")
                if pid is not None:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            return
        # A lock cannot be waited for with a deadline.
        time.sleep(_POLL)


def _escaped(path: Path) -> str:
    return str(path).replace("\\", "\\\\").replace('"', '\\"')
