"""Shows progress on stderr for steps that take longer than a second."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from legion.cli.base.output import duration


@contextmanager
def progress(what: str, hint: str = "") -> Iterator[None]:
    """Print what is being done after one second; on a terminal, count the seconds, and say what the person can do."""
    done = threading.Event()
    started = time.monotonic()
    tty = sys.stderr.isatty()

    def show() -> None:
        shown = False
        while not done.wait(1.0):
            if tty:
                passed = duration(time.monotonic() - started)
                sys.stderr.write(f"\r{what}, {passed}; {hint}\x1b[K" if hint else f"\r{what} ({passed})")
                sys.stderr.flush()
            elif not shown:
                sys.stderr.write(f"{what} ...\n")
            shown = True
        if shown and tty:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    printer = threading.Thread(target=show, daemon=True)
    printer.start()
    try:
        yield
    finally:
        done.set()
        printer.join()
