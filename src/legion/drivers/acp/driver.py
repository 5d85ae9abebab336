"""The driver of programs that speak the Agent Client Protocol, as a runner loads it."""

from __future__ import annotations

from legion.drivers import Ending, Host
from legion.drivers.acp.agent import AcpAgent
from legion.drivers.turns.run import run_turns


class AcpDriver:
    def run(self, host: Host) -> Ending:
        return run_turns(host, AcpAgent)
