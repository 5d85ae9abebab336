"""The driver of Claude Code that a runner loads."""

from __future__ import annotations

import asyncio
from dataclasses import replace

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
    options = ClaudeOptions.from_json(host.options)
    session = ClaudeSession(host, options)
    ending = await session.run_to_end()
    if not session.could_not_fork:
        return ending
    host.output.write(b"The conversation to copy cannot be read: a fresh one starts.\n")
    host.record("not-forked", source=options.fork_of)
    return await ClaudeSession(host, replace(options, fork_of="", fork_at="")).run_to_end()
