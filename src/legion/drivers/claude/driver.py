"""Claude Code as the runner sees it: one driver, from the program's start to its end."""

from __future__ import annotations

import asyncio

from legion.drivers import Ending, Host, Outcome, StartFailed
from legion.drivers.claude.options import ClaudeOptions
from legion.drivers.claude.talk import Talk


class ClaudeDriver:
    def run(self, host: Host) -> Ending:
        try:
            return asyncio.run(_talk(host))
        except StartFailed as failure:
            return Ending(outcome=Outcome.FAILED_TO_START, exit_code=None, message=str(failure))


async def _talk(host: Host) -> Ending:
    return await Talk(host, ClaudeOptions.from_json(host.options)).until_end()
