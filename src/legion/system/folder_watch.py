"""Ends a process whose own folder was deleted or replaced: what it writes there would be lost.

A process that holds a port and a lock in a folder that is gone would otherwise live for ever.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

EVERY = 2.0
"""Seconds between two looks; each is one system call."""


def watch(file: Path, gone: Callable[[], None], *, every: float = EVERY) -> None:
    """Call `gone` once, in a thread, when the path no longer leads to what it leads to now, if that is anything."""
    before = _identity(file)
    if before is None:
        return

    def look() -> None:
        pause = threading.Event()
        while _identity(file) == before:
            pause.wait(every)
        gone()

    threading.Thread(target=look, name="folder-watch", daemon=True).start()


def end_process(file: Path) -> None:
    """At once, without the usual steps: each of them would write."""
    sys.stderr.write(f"{file} was deleted or replaced, so this process ends: nothing that it does would be kept.\n")
    sys.stderr.flush()
    os._exit(1)


def _identity(file: Path) -> tuple[int, int] | None:
    try:
        facts = file.stat()
    except OSError:
        return None
    return facts.st_dev, facts.st_ino
