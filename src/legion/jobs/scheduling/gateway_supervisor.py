"""Keeps the gateway running while agents need it, reads its ledger, and wakes tickets that wait for a provider.

Gateway and daemon outlive each other: a dead gateway is replaced at its old address before an agent gives up, and the
gateway of a dead daemon is found by the next one.
"""

from __future__ import annotations

import logging

from legion.domain.errors import LegionError
from legion.gateway import lifecycle
from legion.gateway.files.folder import GatewayFolder
from legion.gateway.files.passes import granted
from legion.jobs.agent import model_access
from legion.jobs.context import Context
from legion.jobs.loop import BackgroundLoop
from legion.jobs.scheduling import throttle
from legion.jobs.scheduling.provider_waits import ProviderWatch
from legion.jobs.supervise import usage
from legion.system import files

log = logging.getLogger(__name__)

_EVERY = 2.0
_IDLE = 15.0
"""Seconds: also without an event, a line that a busy gateway wrote late is read."""
_AFTER_TROUBLE = 10.0
_LAST_READS = 3
"""Reads of the ledger after the last commit: the last lines of a run are written up to half a second after its end."""


class GatewaySupervisor(BackgroundLoop):
    def __init__(self, context: Context) -> None:
        super().__init__(context, "gateway-supervisor")
        self._folder = GatewayFolder(context.data.gateway)
        self._watch = ProviderWatch(context)

    def stop(self) -> None:
        """The gateway keeps running while agents do; otherwise it stops with the daemon."""
        super().stop()
        self._thread.join(_EVERY)
        if not self._folder.root.is_dir():
            return
        with files.waiting_lock(self._folder.starting):
            # A gateway that is just being started would not be seen, and would be left running.
            pass
        if not self._needed():
            lifecycle.end(self._folder)

    def _repeat(self) -> None:
        """Check every other second while an agent has a pass, and for a few seconds after each commit; then sleep.

        Not only while a pass is seen: that of a short run may come and go between two checks, and the last lines of the
        ledger would stay unread. While a ticket waits for a provider, also check: many fixes of a person send no event.
        """
        self._renew()
        reads = 1
        while not self._stopping.is_set():
            self._wake.clear()
            patience = _IDLE if self._folder.ledger.is_dir() else None
            try:
                if self._watch.check():
                    patience = _EVERY
                if self._needed():
                    reads = _LAST_READS
                    self._revive()
                if reads:
                    usage.catch_up(self.context)
                    throttle.enforce(self.context)
                    reads -= 1
                    patience = _EVERY if reads else patience
            except (LegionError, OSError) as trouble:
                log.error("gateway supervisor: check failed, retry in %g s: %s", _AFTER_TROUBLE, trouble)
                patience = _AFTER_TROUBLE
            woken = self._wake.wait(patience)
            reads = _LAST_READS if woken else max(reads, 1)
            # One check is enough for all commits of a second.
            self._stopping.wait(_EVERY / 2)

    def _needed(self) -> bool:
        return self._folder.passes.is_dir() and any(True for _ in granted(self._folder))

    def _renew(self) -> None:
        """Replace a gateway of an earlier daemon that lacks variables of this one."""
        try:
            model_access.refresh_gateway_variables(self.context)
        except (LegionError, OSError) as trouble:
            log.error("the gateway keeps its old environment: %s", trouble)

    def _revive(self) -> None:
        if lifecycle.address(self._folder) is None:
            log.warning("the gateway was gone and is started again")
            model_access.write_gateway_files(self.context)
            lifecycle.ensure(self._folder, self.context.user.daemon.gateway_port)
