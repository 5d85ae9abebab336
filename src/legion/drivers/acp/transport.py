"""Moves JSON-RPC messages over the pipes of a program. The program may be hostile: its lines are limited in length."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

from legion.domain.text import to_json
from legion.drivers.turns.process import AgentProcess

_MOST_UNREAD = 32 << 20
"""Bytes of answers that a program may leave unread before no more of its requests are read."""


class PipeTransport:
    """The transport of an `acp.Connection`. What is no message goes to the run's log."""

    def __init__(self, process: AgentProcess) -> None:
        self._process = process
        if process.stdin is not None:
            process.stdin.transport.set_write_buffer_limits(high=_MOST_UNREAD)

    async def send(self, message: dict[str, Any]) -> None:
        writer = self._process.stdin
        if writer is None or writer.is_closing():
            raise ConnectionError("The program no longer reads its input.")
        writer.write(to_json(message, ensure_ascii=False).encode() + b"\n")
        await writer.drain()

    async def receive(self) -> dict[str, Any] | None:
        await self._answers_are_read()
        while line := await self._process.read_line():
            message = _parse(line)
            if message is not None:
                return message
            if line.strip():
                self._process.keep(line)
        return None

    async def _answers_are_read(self) -> None:
        """The library starts a task for each message, and reads the next one before that has run."""
        await asyncio.sleep(0)
        writer = self._process.stdin
        if writer is not None and not writer.is_closing():
            with contextlib.suppress(ConnectionError):
                await writer.drain()

    async def close(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) and "jsonrpc" in message else None
