"""The warm process: it has imported a whole daemon, and turns into one in a millisecond, as often as it is asked to.

It has one thread and holds nothing but its socket and what it was just handed, so nothing leaks into daemons.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
from dataclasses import dataclass

import legion.daemon.main
from legion.system import crash
from tests.support.warm import LONGEST

_LATER = (
    "sqlalchemy.dialects.sqlite.pysqlite",
    "uvicorn.lifespan.off",
    "uvicorn.loops.auto",
    "uvicorn.protocols.http.auto",
    "uvicorn.protocols.websockets.auto",
)
"""What a daemon imports by name only when it is about to serve."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The daemon that this process is to be."""

    words: list[str]
    env: dict[str, str]
    cwd: str
    ready: int
    handles: list[int]
    """Where it says that it is ready, and where its output goes."""


def main(handle: int) -> None:
    for name in _LATER:
        importlib.import_module(name)
    # A terminal's interrupt is for the tests, which still ask us how their daemons ended.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=handle) as asks:
        wanted = _serve(asks)
    if wanted is not None:
        _become(wanted)


def _serve(asks: socket.socket) -> Wanted | None:
    """Fork for every ask. It returns in each child, and here when nobody is left who could ask."""
    living: set[int] = set()
    with contextlib.suppress(ConnectionError):
        while True:
            message, handles, _, _ = socket.recv_fds(asks, LONGEST, 2)
            if not message:
                break
            ask = json.loads(message)
            if "reap" in ask:
                pid, status = os.waitpid(ask["reap"], 0)
                living.remove(pid)
                answer = os.waitstatus_to_exitcode(status)
            else:
                answer = os.fork()
                if answer == 0:
                    return Wanted(**ask, handles=handles)
                living.add(answer)
                for one in handles:
                    os.close(one)
            asks.send(str(answer).encode())
    for pid in living:
        os.kill(pid, signal.SIGKILL)
    return None


def _become(wanted: Wanted) -> None:
    """Everything that an exec would have made so; then it is the daemon, to the end of the interpreter."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    ready, output = wanted.handles
    for number in (1, 2):
        os.dup2(output, number)
    os.dup2(ready, wanted.ready)
    os.closerange(3, wanted.ready)
    os.closerange(wanted.ready + 1, os.sysconf("SC_OPEN_MAX"))
    os.chdir(wanted.cwd)
    sys.path[0] = wanted.cwd
    os.environ.clear()
    os.environ.update(wanted.env)
    crash.obey_environment()
    sys.argv[1:] = wanted.words
    runpy.run_module(legion.daemon.__name__, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
