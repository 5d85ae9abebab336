"""Files that are too large to land without a person's approval: a repository keeps them for ever."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from legion.domain.review.path_patterns import matches

_MEGABYTE = 1 << 20


@dataclass(frozen=True, kw_only=True)
class LargeFile:
    path: str
    bytes: int

    @property
    def sentence(self) -> str:
        return f"{self.path}: {self.bytes / _MEGABYTE:.0f} MB"


def too_large(sizes: Iterable[tuple[str, int]], declared: Sequence[str], limit_mb: float) -> tuple[LargeFile, ...]:
    """The files above the limit that the ticket does not declare. A limit of 0 is none."""
    if not limit_mb:
        return ()
    found = (LargeFile(path=path, bytes=size) for path, size in sizes if size > limit_mb * _MEGABYTE)
    return tuple(file for file in found if not matches(file.path, declared))
