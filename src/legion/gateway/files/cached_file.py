"""A file that others replace, read again only when it changed. Knows nothing of what is in it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")


class CachedFile(Generic[T]):
    """`value` costs one stat while the file stays the same. A file that cannot be understood raises every time."""

    def __init__(self, path: Path, parse: Callable[[bytes, Path], T]) -> None:
        self._path = path
        self._name = str(path)
        self._parse = parse
        self._seen: tuple[tuple[int, int, int], T] | None = None

    def value(self) -> T:
        """Raises FileNotFoundError where there is no file."""
        status = os.stat(self._name)  # noqa: PTH116 - asked with every request, and three times as fast
        mark = (status.st_ino, status.st_mtime_ns, status.st_size)
        if self._seen is None or self._seen[0] != mark:
            self._seen = (mark, self._parse(self._path.read_bytes(), self._path))
        return self._seen[1]
