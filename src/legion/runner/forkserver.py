"""The fork server: a fresh process that turns into a runner in a millisecond, as often as it is asked to.

It is exec'd with two sockets and holds no lock, so nothing leaks into runners. The first socket brings runs of plain
programs, for which the server stays small: a fork costs what the process has in memory. The second brings runs of
drivers that need an SDK. A child that has imported the SDK serves the second; it is forked when no request came for a
while, or at the first such run. The death of either costs nothing: runners live on, and the launcher starts another.
Both end with the daemon.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
from pathlib import Path

from legion.drivers import registry
from legion.runner import sandbox, tree
from legion.runner.host import become
from legion.system import imports, kernel

LONGEST_PATH = 1 << 16

_IDLE = 5.0
"""Seconds without a request after which the child for SDK drivers is made, so that their first run need not wait."""


def main(plain: int, with_sdk: int) -> None:
    """Fork a runner for every message: the path of a run's folder, and a pipe on which its runner answers."""
    # Runners are our children while we live; the kernel reaps them by itself.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    sandbox.prepare()
    # What is here now is shared with every runner, and no collection of theirs copies it.
    gc.freeze()
    with socket.socket(fileno=plain) as programs, socket.socket(fileno=with_sdk) as agents:
        while tree.first_readable((programs, agents), _IDLE) is programs:
            if not _serve_one(programs, (programs, agents)):
                return
        if os.fork() == 0:
            try:
                programs.close()
                _serve_agents(agents)
            finally:
                os._exit(0)
        agents.close()
        while _serve_one(programs, (programs,)):
            pass


def _serve_agents(requests: socket.socket) -> None:
    kernel.die_with_parent(signal.SIGKILL)
    with imports.without_gc():
        registry.warm()
    while _serve_one(requests, (requests,)):
        pass


def _serve_one(requests: socket.socket, held: tuple[socket.socket, ...]) -> bool:
    """Wait for a request and fork its runner, which closes the sockets. False where no other request will come."""
    message, handles, _, _ = socket.recv_fds(requests, LONGEST_PATH, 1)
    if not message:
        return False
    (starter,) = handles
    if os.fork() == 0:
        for handle in held:
            handle.close()
        become(Path(os.fsdecode(message)), starter)
    os.close(starter)
    return True


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
