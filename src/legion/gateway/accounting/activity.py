"""Which runs have a request open at this moment: written by the gateway, read by the daemon.

A file like all that they share, replaced at most twice a second and only where something changed. It says nothing once
its gateway is gone.
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


class Activity:
    """The gateway's side."""

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
        beside = self._folder.activity.with_suffix(".new")
        try:
            beside.touch(mode=0o600)
            beside.write_text(json.dumps({"version": VERSION, "open": now}))
            beside.replace(self._folder.activity)
        except OSError as fault:
            # Nobody can tell then whether models think, and nobody is called silent.
            log.warning("What is open cannot be written down (%s).", fault.strerror)
            return
        self._written = now


def open_requests(folder: GatewayFolder) -> Mapping[str, float] | None:
    """By run: since when it has had a request open. None where no gateway tells."""
    if not files.is_locked(folder.lock):
        return None
    try:
        told = parse(folder.activity.read_bytes(), folder.activity).get("open")
    except (OSError, Damaged):
        return None
    return {str(run): float(since) for run, since in told.items()} if isinstance(told, dict) else None
