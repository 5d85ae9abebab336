"""The driver of programs that print JSON lines, as a runner loads it."""

from __future__ import annotations

import asyncio

from legion.drivers import Ending, EndKind, Host, StartFailed
from legion.drivers.json_lines.agent import JsonLinesAgent
from legion.drivers.turns.options import TurnOptions
from legion.drivers.turns.run import TurnActivity, TurnRun


class JsonLinesDriver:
    def run(self, host: Host) -> Ending:
        try:
            return asyncio.run(_run(host))
        except StartFailed as failure:
            return Ending(outcome=EndKind.FAILED_TO_START, exit_code=None, message=str(failure))


async def _run(host: Host) -> Ending:
    options = TurnOptions.from_json(host.options)
    activity = TurnActivity()
    agent = JsonLinesAgent(host, options, activity)
    run = TurnRun(host, options, agent, activity)
    agent.on_work = run.heard
    return await run.run_to_end()
