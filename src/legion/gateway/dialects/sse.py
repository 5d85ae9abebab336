"""Parses server-sent events from bytes that may be cut anywhere, and writes them. Does not read their data."""

from __future__ import annotations

from legion.gateway.json_text import UnreadableMessage

MAX_EVENT = 32 << 20
"""Bytes of one event; a longer one is taken for endless."""


class Splitter:
    """`feed` returns the data of every complete event. Names of events are dropped: the data repeats them."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        """The pieces of a line that has not ended: joined once, or a long line would be copied with each of them."""
        self._length = 0
        self._held = False
        """Whether the rest ends with a line break, or with the first half of one."""
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> list[bytes]:
        """Raises UnreadableMessage for an event that is too long."""
        self._rest.append(piece)
        self._length += len(piece)
        events: list[bytes] = []
        if self._held or b"\n" in piece or b"\r" in piece:
            for line in self._lines():
                self._take(line, events)
        if self._length + self._size > MAX_EVENT:
            raise UnreadableMessage(f"an event is longer than {MAX_EVENT >> 20} MB")
        return events

    def end(self) -> list[bytes]:
        """The last event of an answer that does not end with an empty line."""
        return self.feed(b"\n\n")

    def _lines(self) -> list[bytes]:
        """Those that have ended."""
        text = b"".join(self._rest)
        # The second half of the line break may still come.
        self._held = text.endswith(b"\r")
        held = b"\r" if self._held else b""
        text = text.removesuffix(b"\r")
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = text.split(b"\n")
        self._rest = [lines.pop() + held]
        self._length = len(self._rest[0])
        return lines

    def _take(self, line: bytes, events: list[bytes]) -> None:
        if line.startswith(b"data:"):
            data = line[6:] if line.startswith(b"data: ") else line[5:]
            self._data.append(data)
            self._size += len(data)
        elif not line and self._data:
            events.append(self._data[0] if len(self._data) == 1 else b"\n".join(self._data))
            self._data.clear()
            self._size = 0


def sse_event(data: bytes, name: str = "") -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), data) if name else b"data: %s\n\n" % data
