"""The process of a link: forwards TCP connections to one address, as badly as its parent asks for.

It prints its port. Each line on stdin is a request, and each is answered with a line: a state of the link as JSON, or
`break`, which resets every connection. It ends with its stdin, so it never outlives its parent.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import socket
import struct
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Flow:
    """One direction."""

    stalled: bool = False
    """Bytes wait, as behind a cable that was pulled; they arrive when it is plugged in again."""
    delay: float = 0.0
    """Seconds that each byte needs."""
    bytes_per_second: float = 0.0
    """0: as fast as it goes."""
    loss: float = 0.0
    """The share of pieces, of at most 16 KB each, at which the connection breaks."""


@dataclass(frozen=True, kw_only=True)
class LinkState:
    up: Flow = field(default_factory=Flow)
    """From the one that dials, a machine, to the head."""
    down: Flow = field(default_factory=Flow)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of_json(cls, given: Mapping[str, Any]) -> LinkState:
        return cls(up=Flow(**given["up"]), down=Flow(**given["down"]))


GOOD = LinkState()
CUT = LinkState(up=Flow(stalled=True), down=Flow(stalled=True))
ONLY_UP = LinkState(down=Flow(stalled=True))
"""The head receives everything, and its answers do not arrive."""
ONLY_DOWN = LinkState(up=Flow(stalled=True))
SLOW = LinkState(up=Flow(delay=0.1), down=Flow(delay=0.1))
"""200 ms there and back."""
LOSSY = LinkState(up=Flow(loss=0.05), down=Flow(loss=0.05))


_PIECE = 16 * 1024
_MOST_WAITING = 64
"""Pieces that one direction holds; then the sender has to wait, as with a full window."""
_RESET = struct.pack("ii", 1, 0)


@dataclass(kw_only=True)
class _Link:
    host: str
    port: int
    chance: random.Random
    state: LinkState = GOOD
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    open: set[ForwardedConnection] = field(default_factory=set)

    def change(self, state: LinkState) -> None:
        self.state = state
        self.changed.set()
        self.changed = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(self.host, self.port)
        except OSError:
            _reset(writer)
            return
        connection = ForwardedConnection(link=self, writers=(writer, far_writer))
        self.open.add(connection)
        try:
            await asyncio.gather(
                connection.pump(reader, far_writer, lambda: self.state.up),
                connection.pump(far_reader, writer, lambda: self.state.down),
            )
        except (OSError, ConnectionError):
            connection.reset()
        finally:
            self.open.discard(connection)
            for one in connection.writers:
                one.close()


@dataclass(eq=False, kw_only=True)
class ForwardedConnection:
    """One forwarded connection."""

    link: _Link
    writers: tuple[asyncio.StreamWriter, asyncio.StreamWriter]

    def reset(self) -> None:
        for one in self.writers:
            _reset(one)

    async def pump(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, flow: Callable[[], Flow]) -> None:
        """Both halves: one reads and stamps pieces, one writes them when they are due."""
        waiting: deque[tuple[float, bytes]] = deque()
        more, room = asyncio.Event(), asyncio.Event()

        async def read() -> None:
            while True:
                piece = await source.read(_PIECE)
                while len(waiting) >= _MOST_WAITING:
                    room.clear()
                    await room.wait()
                waiting.append((asyncio.get_running_loop().time() + flow().delay, piece))
                more.set()
                if not piece:
                    return

        reading = asyncio.create_task(read())
        try:
            while True:
                while not waiting:
                    more.clear()
                    await _first(more.wait(), reading)
                due, piece = waiting[0]
                await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))
                while flow().stalled:
                    await self.link.changed.wait()
                waiting.popleft()
                room.set()
                if not piece:
                    break
                if self.link.chance.random() < flow().loss:
                    raise ConnectionResetError
                target.write(piece)
                await target.drain()
                if flow().bytes_per_second:
                    await asyncio.sleep(len(piece) / flow().bytes_per_second)
        finally:
            reading.cancel()
        if target.can_write_eof():
            target.write_eof()


async def _first(wanted: Awaitable[object], reading: asyncio.Task[None]) -> None:
    """Wait for a piece; raises what ended the reading, if it ended first."""
    waiter = asyncio.ensure_future(wanted)
    done, _ = await asyncio.wait({waiter, reading}, return_when=asyncio.FIRST_COMPLETED)
    if reading in done:
        waiter.cancel()
        reading.result()


def _reset(writer: asyncio.StreamWriter) -> None:
    """The peer sees a reset instead of an orderly end."""
    raw = writer.get_extra_info("socket")
    if raw is not None:
        with contextlib.suppress(OSError):
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()


async def _obey(link: _Link, stdin: asyncio.StreamReader) -> None:
    while line := await stdin.readline():
        if line.strip() == b"break":
            for one in list(link.open):
                one.reset()
        else:
            link.change(LinkState.of_json(json.loads(line)))
        _say("ok")


async def _main(listen: str, host: str, port: int, seed: int) -> None:
    link = _Link(host=host, port=port, chance=random.Random(seed))
    server = await asyncio.start_server(link.serve, listen, 0)
    stdin = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stdin), sys.stdin)
    _say(server.sockets[0].getsockname()[1])
    await _obey(link, stdin)
    for one in list(link.open):
        one.reset()
    # Nothing is left to save, and what still waits for a connection would only report that it was cancelled.
    os._exit(0)


def _say(line: object) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
