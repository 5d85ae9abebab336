"""The output of a program, kept in a file up to a limit: the beginning, and the last part of any length of output."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

TAIL = 64 << 10


class OutputFile:
    """Memory stays small whatever the program prints. A full disk costs output, never the run."""

    def __init__(self, path: Path, limit: int, on_limit: Callable[[str], None]) -> None:
        self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._room = limit
        self._on_limit = on_limit
        self._over = False
        self._tail = bytearray()
        self._left_out = 0
        self.printed = 0

    def write(self, data: bytes) -> None:
        self.printed += len(data)
        if not self._over:
            kept = data[: self._room]
            self._room -= len(kept)
            data = data[len(kept) :]
            if not self._put(kept):
                return
            if not data:
                return
            self._over = True
            self._on_limit("the limit is reached; of the rest only the last part is kept")
        self._tail += data
        if len(self._tail) > 2 * TAIL:
            self._forget(len(self._tail) - TAIL)

    def close(self) -> None:
        """Add the last part, after a line that states how much is missing."""
        if len(self._tail) > TAIL:
            self._forget(len(self._tail) - TAIL)
        if self._left_out:
            self._put(f"\n[{self._left_out} bytes left out]\n".encode())
        self._put(bytes(self._tail))
        os.close(self._handle)

    def _forget(self, count: int) -> None:
        del self._tail[:count]
        self._left_out += count

    def _put(self, data: bytes) -> bool:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._handle, view) :]
        except OSError as failure:
            if not self._over:
                self._over = True
                self._on_limit(f"the file could not be written: {failure.strerror}")
            return False
        return True
