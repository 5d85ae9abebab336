"""A runner that only listens: it holds the lock and the control socket of a run, and notes what it is asked."""

from __future__ import annotations

import contextlib
import select
import threading
from collections.abc import Iterator
from pathlib import Path

from legion.drivers import ControlRequest
from legion.runner.control import ControlServer
from legion.runner.spec import RunFolder
from legion.system import files


@contextlib.contextmanager
def listening(run_dir: Path) -> Iterator[list[ControlRequest]]:
    """What it is asked, in order; complete when the block has ended."""
    run_dir.mkdir(parents=True, exist_ok=True)
    asked: list[ControlRequest] = []
    server = ControlServer(run_dir, run_dir.name)
    over = threading.Event()

    def listen() -> None:
        while not over.is_set():
            if select.select([server], [], [], 0.05)[0]:
                asked.extend(server.take())

    held = files.lock(RunFolder(run_dir).lock)
    thread = threading.Thread(target=listen)
    thread.start()
    try:
        yield asked
    finally:
        over.set()
        thread.join()
        while select.select([server], [], [], 0)[0]:
            asked.extend(server.take())
        server.close()
        held.release()
