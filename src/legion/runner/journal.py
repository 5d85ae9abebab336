"""A run's journal: numbered events, one JSON line each, only appended. The file is the truth; sockets only signal."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import MappingProxyType

from legion.domain.text import in_all, recorded, to_json
from legion.runner.spec import RunFolder
from legion.system import files

VERSION = 1


class JournalKind(Enum):
    """The events that the runner itself writes; drivers add their own."""

    OPENED = "opened"
    """A runner holds the lock: its pid."""
    STARTING = "starting"
    """The program is about to start. From here on it is never started again, whatever happens."""
    STARTED = "started"
    """It runs: the pid that its signals go to, and that process's start time."""
    REFUSED = "refused"
    """It wanted a host that its network does not lead to: the host, the port, and why."""
    OUTPUT_LIMIT = "output-limit"
    """It printed more than is kept."""
    ENDED = "ended"
    """None of its processes is alive; the result follows."""


@dataclass(frozen=True, kw_only=True)
class JournalEvent:
    """One fact of a run. `kind` is open text: another release's runner may write kinds that this one does not know."""

    number: int
    time: float
    kind: str
    facts: Mapping[str, object]


class Journal:
    """The writing end. One process has it: the one that holds the run's lock."""

    def __init__(self, run_dir: Path, ring: Callable[[], None]) -> None:
        earlier = read_journal(run_dir, last=1)
        self._number = earlier[-1].number if earlier else 0
        self._ring = ring
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._handle = os.open(RunFolder(run_dir).journal, flags, 0o600)
        self._torn = self._ends_torn()
        self._lock = threading.Lock()
        """The bridge's threads write, too."""

    def append(self, kind: JournalKind | str, **facts: object) -> None:
        name = kind.value if isinstance(kind, JournalKind) else kind
        with self._lock:
            self._number += 1
            line = {"version": VERSION, "number": self._number, "time": time.time(), "kind": name, **facts}
            data = b"\n" * self._torn + to_json(in_all(line, recorded)).encode() + b"\n"
            self._torn = True
            self._torn = os.write(self._handle, data) < len(data)
        self._ring()

    def _ends_torn(self) -> bool:
        """Does the file end in half a line (a runner died, the disk was full)? The next event then starts a new one."""
        size = os.fstat(self._handle).st_size
        return size > 0 and os.pread(self._handle, 1, size - 1) != b"\n"


def read_journal(
    run_dir: Path, *, after: int = 0, last: int | None = None, kinds: Collection[str] = ()
) -> list[JournalEvent]:
    """The events with a greater number; of these kinds alone, if any are named; the `last` ones of them, if given.

    No other line is parsed, which is what takes time in a long journal. Half a line, and lines of an unknown version,
    are skipped.
    """
    try:
        content = RunFolder(run_dir).journal.read_bytes()
    except FileNotFoundError:
        return []
    names = [f'"{kind}"'.encode() for kind in kinds]
    found: list[JournalEvent] = []
    for line in reversed(content.split(b"\n")):
        if last is not None and len(found) >= last:
            break
        event = _parse(line) if not names or any(name in line for name in names) else None
        if event is not None and event.number <= after:
            break
        if event is not None and (not kinds or event.kind in kinds):
            found.append(event)
    return found[::-1]


class JournalReader:
    """Continues from where it stopped, for readers that follow a growing journal."""

    def __init__(self, run_dir: Path, after: int = 0) -> None:
        self._path = RunFolder(run_dir).journal
        self._after = after
        self._offset = 0

    def read_on(self) -> list[JournalEvent]:
        """The complete lines that were added since. Half a line is read again when it is complete."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                content = file.read()
        except FileNotFoundError:
            return []
        whole, _, _ = content.rpartition(b"\n")
        self._offset += len(whole) + 1 if whole else 0
        events = (_parse(line) for line in whole.split(b"\n"))
        return [event for event in events if event is not None and event.number > self._after]


def read_tail(run_dir: Path, most: int) -> list[JournalEvent]:
    """The events in the last `most` bytes, for frequent readers that need only the end."""
    content = files.end(RunFolder(run_dir).journal, most)
    return [event for line in content.split(b"\n") if (event := _parse(line)) is not None]


def _parse(line: bytes) -> JournalEvent | None:
    try:
        facts = in_all(json.loads(line), recorded)
        if facts.pop("version") != VERSION:
            return None
        number, moment, kind = facts.pop("number"), facts.pop("time"), facts.pop("kind")
    except (ValueError, KeyError, AttributeError, RecursionError):
        return None
    return JournalEvent(number=number, time=moment, kind=kind, facts=MappingProxyType(facts))
