"""A fork server that is forked with its daemon instead of exec'd by it, so that it need not import anything again.

The daemon's first fork server comes from here; those that replace it are exec'd as everywhere. It gets the arguments,
environment, folder, session and handles that the launcher gives to one that it starts.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from legion.drivers import registry
from legion.runner import forkserver, launch
from legion.runner.launch import ServerProcess
from legion.system import crash

_LONGEST = 1 << 17
_ARGUMENTS = slice(45, 47)
"""The fields of /proc/self/stat, behind the name, that say where the command line is in memory."""


def warm() -> None:
    """Import what runners need, before the first fork."""
    registry.warm()


def prepare() -> None:
    """Fork a process that becomes this process's first fork server. Call it before any thread is started."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(KeyboardInterrupt):
            ours.close()
            _wait(theirs)
        os._exit(0)
    theirs.close()
    waiting = _Waiting(ours, pid)
    exec_server = launch.start_server

    def start(argv: Sequence[str], env: Mapping[str, str], handles: Sequence[int]) -> ServerProcess:
        if waiting.used:
            return exec_server(argv, env, handles)
        return waiting.use(argv, env, handles)

    launch.start_server = start


class _Waiting:
    """The forked process, as its daemon handles it."""

    def __init__(self, asks: socket.socket, pid: int) -> None:
        self._asks = asks
        self.pid = pid
        self.used = False

    def use(self, argv: Sequence[str], env: Mapping[str, str], handles: Sequence[int]) -> _Waiting:
        self.used = True
        with self._asks:
            socket.send_fds(self._asks, [json.dumps({"argv": list(argv), "env": dict(env)}).encode()], list(handles))
            # As an exec, it is over when the process is the new program.
            self._asks.recv(1)
        return self

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        with contextlib.suppress(ChildProcessError):
            return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return 0


def _wait(asks: socket.socket) -> None:
    """Become the fork server when asked to; end if the daemon ends before."""
    message, handles, _, _ = socket.recv_fds(asks, _LONGEST, 2)
    if not message:
        return
    ask = json.loads(message)
    show_command_line([*ask["argv"][: -len(handles)], *map(str, handles)])
    os.setsid()
    os.chdir("/")
    asks.send(b".")
    asks.close()
    _inherit_nothing_but(handles)
    os.environ.clear()
    os.environ.update(ask["env"])
    crash.load_environment()
    # As the option -P leaves it.
    sys.path[:] = [place for place in sys.path if place not in ("", str(Path.cwd()))]
    forkserver.main(*handles)


def _inherit_nothing_but(handles: Sequence[int]) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    last = 2
    for handle in sorted(handles):
        os.closerange(last + 1, handle)
        last = handle
    os.closerange(last + 1, os.sysconf("SC_OPEN_MAX"))


def show_command_line(argv: Sequence[str]) -> None:
    """Have /proc show this command line for this process, as far as there is room for it."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = (int(field) for field in fields[_ARGUMENTS])
    line = b"\0".join(os.fsencode(word) for word in argv)[: end - start - 1]
    ctypes.memmove(start, line.ljust(end - start, b"\0"), end - start)
