"""Importing much at once, as processes do that then live long."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """For the time of many imports: collections would look at all of it again and again, and find nothing to free.

    Later ones leave out what was imported.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
