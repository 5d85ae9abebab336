"""The lease of a run on a machine: the worker renews a file, and the runner ends itself and its program without that.

The runner measures by itself, so a killed, stopped or cut-off worker cannot leave an agent working whose ticket the
head has given to another place. The clock also counts while the system sleeps.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from legion.runner import tree
from legion.system import files

_MOST_PAUSE = 1.0
_LOOKS = 40
"""Looks per lease: the program ends that part of a lease too late at most."""


@dataclass(frozen=True, kw_only=True)
class LeaseFile:
    """When the last answered beat was sent, and for how long that lets agents work."""

    sent: float
    """By `now`."""
    stop: float
    """Seconds."""

    def write(self, path: Path) -> None:
        files.write_atomic(path, json.dumps({"sent": self.sent, "stop": self.stop}), durable=False)

    @classmethod
    def read(cls, path: Path) -> LeaseFile | None:
        """None for a file that is missing or damaged: there is no lease then."""
        try:
            facts = json.loads(path.read_bytes())
            return cls(sent=float(facts["sent"]), stop=float(facts["stop"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def left(self) -> float:
        """Seconds; a clock that went back proves nothing about the time that passed."""
        silent = now() - self.sent
        return self.stop - silent if silent >= 0 else 0.0


_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""It counts while the system sleeps: on macOS the second one does, and `time.monotonic` does not."""


def now() -> float:
    """Seconds since the system started, with the time that it slept."""
    return time.clock_gettime(_CLOCK)


def watch(path: Path, fenced: Path) -> None:
    """End this process and its descendants when the lease is over, or `fenced` is there. Call it before the program
    is started.
    """
    if not holds(path, fenced):
        _end()
    threading.Thread(target=_look, args=(path, fenced), name="lease", daemon=True).start()


def _look(path: Path, fenced: Path) -> None:
    pause = threading.Event()
    while (left := _left(path, fenced)) > 0:
        pause.wait(min(_MOST_PAUSE, max(left / _LOOKS, 0.02)))
    _end()


def holds(path: Path, fenced: Path) -> bool:
    """Whether the program may still work."""
    return _left(path, fenced) > 0


def _left(path: Path, fenced: Path) -> float:
    found = LeaseFile.read(path)
    return 0.0 if found is None or fenced.exists() else found.left()


def _end() -> None:
    """Without a result: the run counts as lost, and what it left in its tree is saved by the worker."""
    sys.stderr.write("The head was not reached for the length of the lease, or has given this run away: it ends.\n")
    sys.stderr.flush()
    tree.kill_children()
    os._exit(1)
