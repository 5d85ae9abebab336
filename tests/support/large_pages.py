"""Memory in large pages: a fork copies one entry for each, not one for every 4 KB that Python has ever touched."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path

_SIZE = 2 << 20
_COLLAPSE = 25
"""MADV_COLLAPSE of Linux 6.1. An older kernel refuses it, and forks take longer then."""


def use() -> None:
    """For what this process holds now. Writing to a page makes it small again."""
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for start in _large_pages():
        if madvise(start, _SIZE, _COLLAPSE) != 0:
            return


def _large_pages() -> Iterator[int]:
    for line in Path("/proc/self/maps").read_text().splitlines():
        place, rights, _, _, _, *name = line.split(maxsplit=5)
        if rights == "rw-p" and name in ([], ["[heap]"]):
            start, end = (int(one, 16) for one in place.split("-"))
            yield from range(-(-start // _SIZE) * _SIZE, end - _SIZE + 1, _SIZE)
