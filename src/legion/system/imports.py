"""The garbage collector of long-lived processes: paused during imports, and rare afterwards."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

_BETWEEN_COLLECTIONS = 20_000
"""Objects. Python's own 700 are made by a single request or job."""


@contextlib.contextmanager
def without_gc() -> Iterator[None]:
    """Pause the garbage collector: during imports it would scan everything again and again and free nothing.

    Imported objects are excluded from later collections.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def collect_rarely() -> None:
    """For a process that has started: what is there now stays, and what comes is mostly freed without a collection."""
    gc.freeze()
    gc.set_threshold(_BETWEEN_COLLECTIONS)
