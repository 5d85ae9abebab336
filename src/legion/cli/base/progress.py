"""A sign of life on stderr for what takes longer than a second."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from legion.cli.base.output import duration


@contextmanager
def progress(what: str) -> Iterator[None]:
    """Says what goes on after a second; counts the seconds where somebody watches."""
    done = threading.Event()
    began = time.monotonic()
    tty = sys.stderr.isatty()

    def tell() -> None:
        said = False
        while not done.wait(1.0):
            if tty:
                sys.stderr.write(f"\r{what} ({duration(time.monotonic() - began)})")
                sys.stderr.flush()
            elif not said:
                sys.stderr.write(f"{what} ...\n")
            said = True
        if said and tty:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()
