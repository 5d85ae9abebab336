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

from legion.drivers import registry
from legion.runner import tree
from legion.runner.host import become
from legion.runner.spec import RunnerError, read_spec
from legion.system import imports

LONGEST_PATH = 1 << 16

_IDLE = 5.0
"""Seconds without an ask after which it warms up wholly. Who asks earlier for nothing but programs need not wait."""


def main(handle: int) -> None:
    """Fork a runner for every message: the path of a run's folder, and a pipe on which its runner answers."""
    # Runners are our children while we live; the kernel buries them without being asked.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # What is here now is shared with every runner, and no collection of theirs copies it.
    gc.freeze()
    warm = False
    with socket.socket(fileno=handle) as asks:
        while True:
            if not warm and not tree.readable(asks.fileno(), _IDLE):
                warm = _warm()
            message, handles, _, _ = socket.recv_fds(asks, LONGEST_PATH, 1)
            if not message:
                return
            (starter,) = handles
            run_dir = Path(os.fsdecode(message))
            if not warm and _is_heavy(run_dir):
                warm = _warm()
            if os.fork() == 0:
                asks.close()
                become(run_dir, starter)
            os.close(starter)


def _warm() -> bool:
    with imports.uncollected():
        registry.warm()
    return True


def _is_heavy(run_dir: Path) -> bool:
    """Whether the run's driver has a library to import; a spec that cannot be read is reported by its runner."""
    try:
        return read_spec(run_dir).profile.heavy
    except RunnerError:
        return False


if __name__ == "__main__":
    main(int(sys.argv[1]))
