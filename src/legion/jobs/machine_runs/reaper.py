"""Ends the leases of silent machines: their runs are given away, and nothing they send later counts."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from legion.domain.machines.leases import HeadLeases
from legion.domain.machines.machine import MachineState, PlacedRun, PlacementState
from legion.jobs.context import Context
from legion.jobs.loop import report
from legion.store.work import machines
from legion.system import loops

log = logging.getLogger(__name__)


def _mark(placed: PlacedRun) -> tuple[bool, int]:
    """Changes when the run is taken, and with each beat that names it."""
    return placed.taken, placed.beats


class Reaper:
    """A thread of the daemon. `clock` is monotonic: neither a set clock nor a sleep of the head ends a lease."""

    def __init__(self, context: Context, clock: Callable[[], float] = time.monotonic) -> None:
        self.context = context
        self._clock = clock
        self._leases = HeadLeases(context.machines.times)
        self._stopping = threading.Event()
        self._thread = loops.lasting(self._watch, name="leases", stopped=self._stopping.wait)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _watch(self) -> None:
        while not self._stopping.wait(self.context.machines.times.beat / 2):
            try:
                self.look()
            except Exception as trouble:  # a head that no longer looks would wait for lost machines for ever
                log.error("leases: check failed, will retry: %s", trouble)
                report(self.context, "leases", trouble)

    def look(self) -> None:
        """One look at all machines with runs."""
        with self.context.store.read() as tx:
            open_runs = machines.open_on(tx)
            present = {one.id: one for one in machines.all(tx)}
        now = self._clock()
        self._leases.observe({one.run: _mark(one) for one in open_runs}, now)
        lapsed = self._leases.lapsed(now)
        for placed in open_runs:
            machine = present.get(placed.machine)
            if placed.run in lapsed:
                silent = f"{self.context.machines.times.reap:g} s"
                self._lapse(placed, f"its machine was not heard for {silent}")
            elif not placed.taken and (machine is None or machine.state is not MachineState.ACTIVE):
                self._lapse(placed, "its machine takes no new runs")

    def _lapse(self, placed: PlacedRun, why: str) -> None:
        with self.context.store.write() as tx:
            # In this transaction: the machine may have been heard, or have taken the run, since the look.
            now = machines.placed(tx, placed.run)
            if now is None or _mark(now) != _mark(placed):
                return
            if not machines.move(tx, placed.run, PlacementState.LAPSED, why):
                return
            machines.note_loss(tx, now)
        log.warning("run %s is given away: %s", placed.name, why)
        self.context.machines.bells.ring(placed.name)
