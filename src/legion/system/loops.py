"""Threads that work until they are stopped: loops, calls for several items at once, the watch over the own folder.

Python waits at its exit for the threads of `concurrent.futures`, so a daemon that is stopped while one of them waits
for a test would stay until the test ends.

A process that holds a port and a lock in a folder that is gone would otherwise live for ever.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

log = logging.getLogger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 300.0


def only_logged(_name: str, _error: Exception) -> None:
    """The log has it."""


def lasting(
    repeat: Callable[[], None],
    *,
    name: str,
    stopped: Callable[[float], object],
    first_pause: float = _FIRST_PAUSE,
    failed: Callable[[str, Exception], object] = only_logged,
) -> threading.Thread:
    """A thread, not started yet, that runs `repeat` until that returns. After an error it is called again.

    `stopped` waits for so many seconds, and is true where the work is to end. The pause doubles with each error that
    follows soon after the last one. `failed` gets each error.
    """

    def run() -> None:
        pause = first_pause
        while True:
            began = time.monotonic()
            try:
                repeat()
            except Exception as error:  # a loop that ends and reports nothing is worse than any fault in it
                if time.monotonic() - began > _LONGEST_PAUSE:
                    pause = first_pause
                log.exception("%s: failed, starts again in %g s", name, pause)
                failed(name, error)
            else:
                return
            if stopped(pause):
                return
            pause = min(pause * 2, _LONGEST_PAUSE)

    return threading.Thread(target=run, name=name, daemon=True)


Item = TypeVar("Item")
Result = TypeVar("Result")


def call_each(function: Callable[[Item], Result], items: Sequence[Item], *, thread_name: str) -> list[Result]:
    """The results in the order of the items. Raises the first error, after all calls have ended."""
    results: dict[int, Result] = {}
    errors: dict[int, BaseException] = {}

    def call(place: int) -> None:
        try:
            results[place] = function(items[place])
        except BaseException as error:  # all errors: each is raised again in the caller's thread
            errors[place] = error

    threads = [
        threading.Thread(target=call, args=(place,), name=f"{thread_name}_{place}", daemon=True)
        for place in range(len(items))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[min(errors)]
    return [results[place] for place in range(len(items))]


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
