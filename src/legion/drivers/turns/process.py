"""The program of a turn: started through the runner, with its pipes as asyncio streams, and its exit to wait for."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from legion.drivers import Child, Host, Program, StartFailed

LONGEST_LINE = 16 << 20
"""A longer message is skipped, and answered as such where it is a request."""
_CHUNK = 1 << 18
_KEPT_OF_LONG = 4096
_KEPT_STDERR = 2000
_DRAIN_TIMEOUT = 1.0
"""Seconds to read the rest of a dead program's output; another process that holds its pipe may never close it."""


@dataclass(frozen=True, kw_only=True)
class LongLine:
    """A line of which only the ends are kept."""

    megabytes: int
    start: bytes
    end: bytes

    @property
    def sentence(self) -> str:
        return f"A line of {self.megabytes} MB was skipped: at most {LONGEST_LINE >> 20} MB are read."


class AgentProcess:
    """One started program. Its stdout is read by the driver, its stderr goes to the run's log."""

    def __init__(self, host: Host, *, on_exit: Callable[[], None] | None = None) -> None:
        self._host = host
        self._on_exit = on_exit
        self._child: Child | None = None
        self._stderr = bytearray()
        self._stderr_task: asyncio.Task[None] | None = None
        self._exit: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.stdout = asyncio.StreamReader(limit=LONGEST_LINE)
        self.stdin: asyncio.StreamWriter | None = None

    @property
    def exit(self) -> asyncio.Future[int]:
        """Its exit code, once it has ended; raises StartFailed where it turns out that it never started."""
        return self._exit

    @property
    def stderr(self) -> str:
        """The end of what it wrote to stderr."""
        return self._stderr.decode("utf-8", "replace")

    async def start(self, argv: tuple[str, ...], *, stdin: Path | None = None) -> None:
        """Raises StartFailed. With a file as its stdin, its stderr is part of its stdout."""
        talks = stdin is None
        program: Program = replace(self._host.program, argv=argv, stdin=stdin, talks=talks)
        child = self._child = self._host.start(program)
        loop = asyncio.get_running_loop()
        loop.add_reader(self._host.deaths.fileno(), self.check_exit)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(self.stdout), child.output)
        if talks:
            assert child.input is not None, "it talks"
            assert child.errors is not None, "it talks"
            errors = asyncio.StreamReader()
            await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(errors), child.errors)
            self._stderr_task = asyncio.create_task(self._forward(errors))
            transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, child.input)
            self.stdin = asyncio.StreamWriter(transport, protocol, None, loop)
        self.check_exit()

    async def read_line(self) -> bytes | LongLine:
        """The next line of its stdout; empty at the end. A line that is too long is skipped up to its last byte."""
        skipped, start = 0, b""
        while True:
            try:
                line = await self.stdout.readuntil(b"\n")
            except asyncio.LimitOverrunError as long:
                piece = await self.stdout.readexactly(long.consumed)
                start, skipped = start or piece[:_KEPT_OF_LONG], skipped + len(piece)
                continue
            except asyncio.IncompleteReadError as end:
                line = end.partial
            if not skipped:
                return line
            long_line = LongLine(megabytes=(skipped + len(line)) >> 20, start=start, end=line[-_KEPT_OF_LONG:])
            self.keep(f"{long_line.sentence}\n".encode())
            return long_line

    def keep(self, data: bytes) -> None:
        """Output outside of the conversation: kept for people, its end for the outcome."""
        self._host.output.write(data)
        self._stderr += data
        del self._stderr[:-_KEPT_STDERR]

    def signal(self, number: int) -> None:
        if self._child is not None and not self._exit.done():
            self._child.signal(number)

    def kill(self) -> None:
        if self._child is not None and not self._exit.done():
            self._child.kill()

    async def end(self, grace: float) -> int | None:
        """Close its input, wait for its exit, kill it after the grace, and return when all its processes are gone."""
        if self._child is None:
            return None
        if self.stdin is not None:
            self.stdin.close()
        loop = asyncio.get_running_loop()
        killing = loop.call_later(grace, self.kill)
        try:
            return await self._exit
        finally:
            killing.cancel()
            loop.remove_reader(self._host.deaths.fileno())
            self._child.sweep()
            if self._stderr_task is not None:
                await asyncio.wait((self._stderr_task,), timeout=_DRAIN_TIMEOUT)
                self._stderr_task.cancel()

    def check_exit(self) -> None:
        """Called when a child process has ended."""
        if self._child is None or self._exit.done():
            return
        try:
            code = self._child.poll()
        except StartFailed as never:
            self._exit.set_exception(never)
            return
        if code is not None:
            self._exit.set_result(code)
            if self._on_exit is not None:
                self._on_exit()

    async def _forward(self, errors: asyncio.StreamReader) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            while data := await errors.read(_CHUNK):
                self.keep(data)
