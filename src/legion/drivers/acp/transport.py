"""Moves JSON-RPC messages over the pipes of a program. The program may be hostile: its lines are limited in length."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from typing import Any

from legion.domain.text import to_json
from legion.drivers.turns.process import AgentProcess, LongLine

_ID = re.compile(rb'"id"\s*:\s*(\d{1,18}|"[\w.:-]{1,100}")')
_METHOD = re.compile(rb'"method"\s*:')
_TOO_LONG = -32600
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
            if isinstance(line, LongLine):
                unread = await self._answer(line)
                if unread is not None:
                    return unread
                continue
            message = _parse(line)
            if message is not None:
                return message
            if line.strip():
                self._process.keep(line)
        return None

    async def _answer(self, line: LongLine) -> dict[str, Any] | None:
        """Without an answer the program waits for ever, and without its own answer we do. Its id is at one of the ends
        of the line, before or behind what makes it long.
        """
        found = _ID.search(line.start) or _ID.search(line.end)
        if found is None:
            return None
        error = {"code": _TOO_LONG, "message": line.sentence}
        failed = {"jsonrpc": "2.0", "id": json.loads(found[1]), "error": error}
        if not (_METHOD.search(line.start) or _METHOD.search(line.end)):
            return failed
        await self.send(failed)
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
