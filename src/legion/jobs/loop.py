"""The base of the daemon's loops: a thread that works until it is stopped, and can be woken."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from legion.domain.errors import LegionError
from legion.domain.events import EventKind
from legion.jobs.board import Board
from legion.jobs.trees import Trees
from legion.system import loops

log = logging.getLogger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 300.0


class BackgroundLoop:
    """A subclass writes `_repeat`, which returns soon after `_stopping` is set.

    An error that it does not expect is logged, and it starts again after a pause: no loop ends or spins unseen.
    """

    pause = _FIRST_PAUSE
    """Seconds after the first unexpected error."""

    def __init__(self, context: Trees, name: str) -> None:
        self.context = context
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._pauses: dict[str, tuple[float, float]] = {}
        """By step that failed unexpectedly: its last pause in seconds, and when that ends."""
        self._thread = loops.lasting(
            self._repeat, name=name, stopped=self._stopping.wait, first_pause=self.pause, failed=self._report
        )

    def start(self) -> None:
        self._thread.start()

    def poke(self) -> None:
        """The store has changed."""
        self._wake.set()

    def stop(self) -> None:
        self._stopping.set()
        self._wake.set()

    def _repeat(self) -> None:
        raise NotImplementedError

    def _attempt(self, what: str, act: Callable[[], object]) -> bool:
        """One step of a pass. Where it fails, the log says so, and the steps after it are done all the same.

        After an unexpected error it is left out for a while, which doubles with each one in a row.
        """
        last, until = self._pauses.get(what, (_FIRST_PAUSE / 2, 0.0))
        if time.monotonic() < until:
            return False
        try:
            act()
        except (LegionError, OSError) as trouble:
            log.warning("%s failed, will retry: %s", what, trouble)
        except Exception as error:  # what one step did not expect must not cost the others
            pause = min(last * 2, _LONGEST_PAUSE)
            log.exception("%s failed unexpectedly, will retry in %g s", what, pause)
            self._pauses[what] = (pause, time.monotonic() + pause)
            self._report(what, error)
        else:
            self._pauses.pop(what, None)
            return True
        return False

    def _report(self, what: str, error: Exception) -> None:
        report(self.context, what, error)


def report(context: Board, what: str, error: Exception) -> None:
    """An unexpected error of work in the background: for doctor each time, and once in a while as an event."""
    live, now = context.live, context.clock()
    known = what in live.recent_failures(now)
    live.failures.update({what: (now, f"{type(error).__name__}: {error}"[:300])})
    if known:
        return
    try:
        with context.store.write() as tx:
            tx.record(EventKind.WARNING, data={"job": what, "why": f"failed and will be tried again: {error}"})
    except Exception:  # the store itself may be what failed, and the log has both
        log.exception("%s: its failure is not among the events", what)
