"""Threads that work until they are stopped: an unexpected error is logged, and the work continues after a pause."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

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
