"""A Legion of its own in one folder, for as long as a play takes: data, settings, a scripted provider, the processes.

Nothing of the person's own Legion is read or touched, and nothing stays running. Knows no ticket and no repository.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import legion
from legion.cli.base.progress import progress
from legion.client import start
from legion.client.discovery import find
from legion.client.legion import Legion
from legion.gateway import lifecycle as gateway
from legion.gateway.files.folder import GatewayFolder
from legion.rehearsal import process as rehearsal
from legion.rehearsal.process import Playing
from legion.system import files
from legion.system.paths import DataDir
from legion.wire.errors import LegionError, Retryable
from legion.wire.projects import Doctor, Where

PROVIDER = "rehearsal"
DRIVER = "claude"
_CLAUDE = "Claude Code"
"""What the doctor calls it."""
_PORT, _GATEWAY_PORT = 16666, 16671
"""Away from those of the person's own Legion; where one is taken, the next free one is used."""
_SLOTS = 32
_LAST_MOMENTS = 15.0
"""Seconds that agents get to end after they were told to."""
_LOOK_AGAIN = 0.05

_SETTINGS = """\
# Settings of this folder alone; your own are not touched.
default_driver = "claude"

[daemon]
port = {port}
gateway_port = {gateway_port}
slots = {slots}

[claude]
provider = "{provider}"
# Commands of agents are scripted, and need no question where there is no sandbox either.
allow = ["Bash"]

[models]
# A scripted model is none the stronger under another name.
escalation = []
fresh_eyes = false
"""

_PROVIDERS = """\
# The scripted model. It takes any key, so this one opens nothing else.
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
        """The command line for whoever looks around afterwards."""
        return self.folder / "legion"

    @property
    def gateway(self) -> GatewayFolder:
        return GatewayFolder(DataDir(self.data).gateway)

    def prepare(self, more_settings: str = "", *, slots: int | None = None) -> None:
        """`slots` are agents at once; None: as many as the project says."""
        known = _SETTINGS.format(port=_PORT, gateway_port=_GATEWAY_PORT, slots=slots or _SLOTS, provider=PROVIDER)
        self.settings.write_text(f"{known}\n{more_settings}", "utf-8")
        files.write_whole(self.key, "scripted-and-worth-nothing\n", mode=0o600)
        words = {
            "data": self.data,
            "settings": self.settings,
            "source": Path(legion.__file__).parent.parent,
            "python": sys.executable,
        }
        self.shortcut.write_text(_SHORTCUT.format(**{name: shlex.quote(str(value)) for name, value in words.items()}))
        self.shortcut.chmod(0o755)

    def use(self) -> None:
        """From here on this process, and what it starts, know nothing of the person's own Legion."""
        for name in ("LEGION_URL", "LEGION_TOKEN", "LEGION_DATA_DIR"):
            os.environ.pop(name, None)
        os.environ["LEGION_CONFIG"] = str(self.settings)


@dataclass(frozen=True, kw_only=True)
class ScratchLegion:
    """A Legion that runs, and the scripted model that its agents talk to."""

    scratch: Scratch
    stage: Playing

    @property
    def legion(self) -> Legion:
        """Its daemon, started again where somebody killed it."""
        return start.start(self.scratch.data)


@contextmanager
def company(
    scratch: Scratch, scripts: Path, *, repository: Path, default: str | None = None, chaos: int | None = None
) -> Iterator[ScratchLegion]:
    """Everything runs, from here to the end of the block. However that ends, nothing of it stays behind."""
    with _ended_by_signals(), rehearsal.playing(scripts, scratch.folder, default=default, chaos=chaos) as stage:
        scratch.providers.write_text(
            _PROVIDERS.format(provider=PROVIDER, url=stage.url, key=_escaped(scratch.key)), "utf-8"
        )
        try:
            with progress("Starting Legion"):
                start.start(scratch.data)
            yield ScratchLegion(scratch=scratch, stage=stage)
        finally:
            with progress("Ending Legion"):
                _end(scratch, repository)


def claude_version(doctor: Doctor) -> str:
    """Of the program that plays the agents. Raises LegionError where there is none."""
    found = next((finding for finding in doctor.findings if finding.name == _CLAUDE), None)
    version = None if found is None else re.match(r"[0-9.]+", found.detail)
    if found is None or version is None:
        raise LegionError(found.detail if found is not None else "Legion does not know Claude Code: update it.")
    return version[0]


def runner_of(scratch: Scratch, ticket: int, run: int) -> int | None:
    """The process that holds the run, as the run's own journal tells it."""
    return _told(_run_folder(scratch, ticket, run), "opened", "runner")


def agent_of(scratch: Scratch, ticket: int, run: int) -> int | None:
    """The first process of its agent program, once that has begun or resumed its conversation."""
    folder = _run_folder(scratch, ticket, run)
    talks = any(event["kind"] == "conversation" for event in _journal(folder))
    return _told(folder, "started", "pid") if talks else None


def is_inside_a_tool(scratch: Scratch, ticket: int, run: int, words: str) -> bool:
    """Whether its agent has begun a call whose input holds these words, and has written that into its conversation."""
    begun = any(
        event["kind"] == "begins" and words in str(event.get("input"))
        for event in _journal(_run_folder(scratch, ticket, run))
    )
    conversations = DataDir(scratch.data).projects.glob(f"*/agents/ticket-{ticket}/claude/projects/*/*.jsonl")
    return begun and any(words in file.read_text("utf-8", "replace") for file in conversations)


def _run_folder(scratch: Scratch, ticket: int, run: int) -> Path:
    return DataDir(scratch.data).runs / f"ticket-{ticket}-run-{run}"


def _told(folder: Path, kind: str, fact: str) -> int | None:
    return next((int(str(event[fact])) for event in _journal(folder) if event["kind"] == kind), None)


def _journal(folder: Path) -> Iterator[dict[str, object]]:
    """Whole lines only; the last may still be being written."""
    with suppress(FileNotFoundError):
        for line in (folder / "journal.jsonl").read_text().rpartition("\n")[0].splitlines():
            with suppress(ValueError):
                yield json.loads(line)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """A polite kill unwinds like Ctrl-C does, so that all processes are ended too."""

    def end(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(scratch: Scratch, repository: Path) -> None:
    """Agents first, so that the daemon can still write down how they ended; then the daemon and the gateway."""
    runs = DataDir(scratch.data).runs
    if _living(runs):
        with suppress(LegionError):
            find(scratch.data).stop_all(Where(cwd=str(repository)))
    _see_off(runs)
    with suppress(Retryable):
        start.stop(scratch.data)
    # One may have begun at the last moment.
    _see_off(runs)
    with suppress(Retryable):
        gateway.end(scratch.gateway)


def _living(runs: Path) -> list[Path]:
    return [lock.parent for lock in runs.glob("*/lock") if files.is_locked(lock)]


def _see_off(runs: Path) -> None:
    """Until no runner lives; who takes too long is killed."""
    deadline = time.monotonic() + _LAST_MOMENTS
    while living := _living(runs):
        if time.monotonic() > deadline:
            for folder in living:
                pid = _told(folder, "opened", "runner")
                if pid is not None:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            return
        # A lock cannot be waited for with a deadline.
        time.sleep(_LOOK_AGAIN)


def _escaped(path: Path) -> str:
    return str(path).replace("\\", "\\\\").replace('"', '\\"')
