"""The driver of programs that print JSON lines, as a runner loads it."""

from __future__ import annotations

from legion.drivers import Ending, Host
from legion.drivers.json_lines.agent import JsonLinesAgent
from legion.drivers.turns.run import run_turns


class JsonLinesDriver:
    def run(self, host: Host) -> Ending:
        return run_turns(host, JsonLinesAgent)
