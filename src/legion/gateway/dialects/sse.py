"""Server-sent events out of bytes that may be cut anywhere. Knows nothing of what the events say."""

from __future__ import annotations

from legion.gateway.json_text import UnreadableMessage

LONGEST = 32 << 20
"""Bytes of one event; whoever sends more is not believed to send an end."""


class Splitter:
    """`feed` gives the data of every event that is complete; names of events repeat what is in their data."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> list[bytes]:
        """Raises Unreadable for an event without end."""
        text = self._rest + piece if self._rest else piece
        held = b""
        if text.endswith(b"\r"):
            # The other half of the line's end may still come.
            text, held = text[:-1], b"\r"
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = text.split(b"\n")
        self._rest = lines.pop() + held
        events: list[bytes] = []
        for line in lines:
            self._take(line, events)
        if len(self._rest) + self._size > LONGEST:
            raise UnreadableMessage(f"an event is longer than {LONGEST >> 20} MB")
        return events

    def end(self) -> list[bytes]:
        """What an answer without its last empty line has left."""
        return self.feed(b"\n\n")

    def _take(self, line: bytes, events: list[bytes]) -> None:
        if line.startswith(b"data:"):
            data = line[6:] if line.startswith(b"data: ") else line[5:]
            self._data.append(data)
            self._size += len(data)
        elif not line and self._data:
            events.append(self._data[0] if len(self._data) == 1 else b"\n".join(self._data))
            self._data.clear()
            self._size = 0


def event(data: bytes, name: str = "") -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), data) if name else b"data: %s\n\n" % data
