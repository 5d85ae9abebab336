"""A place where a program in a sandbox waits until the test lets it go on: two named pipes, no clock."""

from __future__ import annotations

import os
import select
import time
from pathlib import Path

PATIENCE = 90.0


class Gate:
    """Whoever runs `pause` arrives, says which ticket it is, and stands still until the gate opens."""

    def __init__(self, folder: Path, name: str) -> None:
        self._arrivals, self._way = folder / f"{name}.arrived", folder / f"{name}.open"
        for pipe in (self._arrivals, self._way):
            os.mkfifo(pipe)
        # Open for both sides from the start: no writer ever blocks, and nothing is lost between two readers.
        self._hearing = os.open(self._arrivals, os.O_RDWR | os.O_NONBLOCK)
        self._opening = os.open(self._way, os.O_RDWR)
        self._heard = b""

    @property
    def pause(self) -> str:
        """A shell command."""
        return f'{{ echo "${{LEGION_TICKET:-check}}" > {self._arrivals}; read -r _ < {self._way}; }}'

    def arrived(self, count: int = 1) -> list[str]:
        """Wait until so many more have arrived. Returns what they said."""
        deadline = time.monotonic() + PATIENCE
        while self._heard.count(b"\n") < count:
            ready, _, _ = select.select([self._hearing], [], [], deadline - time.monotonic())
            if not ready:
                raise AssertionError(f"{count} should have come to the gate; it heard {self._heard!r}")
            self._heard += os.read(self._hearing, 4096)
        *lines, self._heard = self._heard.split(b"\n", count)
        return [line.decode() for line in lines]

    def open(self, count: int = 1) -> None:
        """Let so many go on."""
        os.write(self._opening, b"\n" * count)

    def close(self) -> None:
        os.close(self._hearing)
        os.close(self._opening)
