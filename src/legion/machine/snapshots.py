"""Sends the tree of a working run to the head at intervals: a machine that is lost loses a few minutes of work."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from legion.domain.errors import LegionError
from legion.jobs.workspace.save import Saved
from legion.machine.errors import Fenced, NotAMachine
from legion.system import loops

log = logging.getLogger("legion")

BEATS = 8
"""Between two snapshots: two minutes where a beat comes every 15 seconds."""


class TreeSnapshots:
    """A thread. `save` makes a commit of the tree, `send` brings it to the head."""

    def __init__(
        self, run: str, *, save: Callable[[], Saved | None], send: Callable[[str], None], every: float
    ) -> None:
        self._run = run
        self._save = save
        self._send = send
        self._every = every
        self._stopping = threading.Event()
        self._thread = loops.lasting(self._repeat, name=f"snapshots {run}", stopped=self._stopping.wait)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Returns when nothing of it works on the tree any more."""
        self._stopping.set()
        self._thread.join()

    def _repeat(self) -> None:
        sent = ""
        while not self._stopping.wait(self._every):
            try:
                saved = self._save()
                if saved is not None and saved.changed and saved.commit != sent and not self._stopping.is_set():
                    self._send(saved.commit)
                    sent = saved.commit
            except (Fenced, NotAMachine):
                return
            except (LegionError, OSError) as trouble:
                # The next one may be sent; the end of the run brings everything anyway.
                log.warning("run %s: no snapshot was sent, will retry: %s", self._run, trouble)
