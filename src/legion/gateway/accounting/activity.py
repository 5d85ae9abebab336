"""The file that lists the runs with an open request: written by the gateway, read by the daemon.

It is replaced at most twice a second, and only after a change. It counts only while its gateway runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable, Mapping

from legion.gateway.files.folder import VERSION, Damaged, GatewayFolder, parse
from legion.system import files

log = logging.getLogger("legion.gateway")

_BATCH = 0.5


class RequestActivity:
    """Writes the file (in the gateway)."""

    def __init__(self, folder: GatewayFolder, now_open: Callable[[], Mapping[str, float]]) -> None:
        self._folder = folder
        self._now_open = now_open
        self._written: Mapping[str, float] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def changed(self) -> None:
        with contextlib.suppress(RuntimeError):  # no loop: the process is ending
            if self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(_BATCH, self.write)

    def write(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now = dict(self._now_open())
        if now == self._written:
            return
        new = self._folder.activity.with_suffix(".new")
        try:
            new.touch(mode=0o600)
            new.write_text(json.dumps({"version": VERSION, "open": now}))
            new.replace(self._folder.activity)
        except OSError as fault:
            # The watchdog then cannot see whether a model is thinking, and reports no silence.
            log.warning("%s cannot be written (%s): make room there.", self._folder.activity, fault.strerror)
            return
        self._written = now


def open_requests(folder: GatewayFolder) -> Mapping[str, float] | None:
    """Start times of open requests by run. None where no gateway runs or the file cannot be read."""
    if not files.is_locked(folder.lock):
        return None
    try:
        requests = parse(folder.activity.read_bytes(), folder.activity).get("open")
    except (OSError, Damaged):
        return None
    return {str(run): float(since) for run, since in requests.items()} if isinstance(requests, dict) else None
