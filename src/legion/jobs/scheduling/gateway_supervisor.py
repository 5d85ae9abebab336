"""Keeps the gateway alive while agents need it, takes over what it counted, and wakes who waited for a way to a model.

Whoever lives longest keeps the agents going: a dead gateway is replaced at its old address before an agent has given
up, and a dead daemon's gateway is simply found again by the next daemon.
"""

from __future__ import annotations

import logging
import threading

from legion.domain.errors import LegionError
from legion.gateway import lifecycle
from legion.gateway.files.folder import GatewayFolder
from legion.gateway.files.passes import granted
from legion.jobs.agent import model_access
from legion.jobs.context import Context
from legion.jobs.scheduling import throttle
from legion.jobs.scheduling.provider_waits import ProviderWatch
from legion.jobs.supervise import usage
from legion.system import files

log = logging.getLogger(__name__)

_EVERY = 2.0
_AFTER_TROUBLE = 10.0
_LAST_LOOKS = 3
"""The last lines of a run come up to half a second after its pass is gone."""


class GatewaySupervisor:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._folder = GatewayFolder(context.data.gateway)
        self._watch = ProviderWatch(context)
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="gatekeeper", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def poke(self) -> None:
        """Something changed in the store: a run may have begun."""
        self._wake.set()

    def stop(self) -> None:
        """The gateway lives on where agents do; where nobody needs it, it goes with us."""
        self._stopping.set()
        self._wake.set()
        self._thread.join(_EVERY)
        if not self._folder.root.is_dir():
            return
        with files.waiting_lock(self._folder.starting):
            # One that is being started at this moment would not be seen, and would stay behind.
            pass
        if not self._needed():
            lifecycle.end(self._folder)

    def _keep(self) -> None:
        """Looks every other second while somebody has a pass, a little longer after the last is gone, then sleeps.

        While a ticket waits for a provider, it looks too: a person mends that in many ways, and some tell nobody.
        """
        self._renew()
        looks = 1
        while not self._stopping.is_set():
            self._wake.clear()
            patience: float | None = None
            try:
                if self._watch.look():
                    patience = _EVERY
                if self._needed():
                    looks = _LAST_LOOKS
                    self._revive()
                if looks:
                    usage.catch_up(self._context)
                    throttle.enforce(self._context)
                    patience = _EVERY
                    looks -= 1
            except (LegionError, OSError) as trouble:
                log.error("the gateway is looked after again in %g s: %s", _AFTER_TROUBLE, trouble)
                patience = _AFTER_TROUBLE
            self._wake.wait(patience)
            # Much may happen in the store in a second, and one look is enough for all of it.
            self._stopping.wait(_EVERY / 2)

    def _needed(self) -> bool:
        return self._folder.passes.is_dir() and any(True for _ in granted(self._folder))

    def _renew(self) -> None:
        """The gateway of the last daemon may lack variables that this one was started with."""
        try:
            model_access.bring_variables(self._context)
        except (LegionError, OSError) as trouble:
            log.error("the gateway keeps its old environment: %s", trouble)

    def _revive(self) -> None:
        if lifecycle.address(self._folder) is None:
            log.warning("the gateway was gone; it is started again")
            model_access.tell_gateway(self._context)
            lifecycle.ensure(self._folder, self._context.user.daemon.gateway_port)
