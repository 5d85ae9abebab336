"""The fork server: a fresh, warm process that turns into a runner in a millisecond, as often as it is asked to.

It is exec'd with one socket and holds no lock, so nothing leaks into runners. Its death costs nothing: its runners
live on, and the launcher starts another. It ends when its daemon does.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
from pathlib import Path

from legion.drivers import known
from legion.runner.host import become

LONGEST_PATH = 1 << 16


def main(handle: int) -> None:
    """Fork a runner for every message: the path of a run's folder, and a pipe on which its runner answers."""
    # Runners are our children while we live; the kernel buries them without being asked.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    known.warm()
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=handle) as asks:
        while True:
            message, handles, _, _ = socket.recv_fds(asks, LONGEST_PATH, 1)
            if not message:
                return
            (starter,) = handles
            if os.fork() == 0:
                asks.close()
                become(Path(os.fsdecode(message)), starter)
            os.close(starter)


if __name__ == "__main__":
    main(int(sys.argv[1]))
