"""The driver of Claude Code that a runner loads."""

from __future__ import annotations

import asyncio

from legion.drivers import Ending, EndKind, Host, StartFailed
from legion.drivers.claude.options import ClaudeOptions
from legion.drivers.claude.session import ClaudeSession


class ClaudeDriver:
    def run(self, host: Host) -> Ending:
        try:
            return asyncio.run(_run_session(host))
        except StartFailed as failure:
            return Ending(outcome=EndKind.FAILED_TO_START, exit_code=None, message=str(failure))


async def _run_session(host: Host) -> Ending:
    return await ClaudeSession(host, ClaudeOptions.from_json(host.options)).run_to_end()
