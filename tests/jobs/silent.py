"""Runners that answer, and one that never does."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

from legion.runner.spec import CONTROL_SOCKET


@contextlib.contextmanager
def runner(run_dir: Path, *, answers: bool) -> Iterator[list[str]]:
    """A control socket in a run's folder. Yields the requests that it got."""
    run_dir.mkdir(parents=True, exist_ok=True)
    asked: list[str] = []
    over = threading.Event()
    with socket.socket(socket.AF_UNIX) as listener:
        folder = os.open(run_dir, os.O_PATH)
        try:
            # The path of a socket is short, and that of a test's folder is not.
            listener.bind(f"/proc/self/fd/{folder}/{CONTROL_SOCKET}")
        finally:
            os.close(folder)
        listener.listen()

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection, connection.makefile("rb") as lines:
                        asked.append(str(json.loads(lines.readline())["ask"]))
                        if answers:
                            connection.sendall(b'{"ok": true}\n')
                        else:
                            over.wait()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield asked
        finally:
            over.set()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
