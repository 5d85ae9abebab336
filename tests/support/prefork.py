"""A fork server and a gateway that are forked with their daemon instead of exec'd by it: they import nothing again.

So are the daemons of a command that starts them. The first of each comes from here; those that replace them are exec'd
as everywhere. They get the arguments, environment, folder, session and handles of those that are exec'd.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import runpy
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import legion.daemon
import legion.gateway.__main__
import legion.gateway.http.server  # what the gateway imports when it starts
from legion.client import start
from legion.client.start import DaemonProcess
from legion.drivers import registry
from legion.gateway import lifecycle
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
    """Fork the processes that become this process's first fork server and gateway. Call it before any thread starts."""
    server, gateway = _fork(_become_fork_server), _fork(_become_gateway)
    exec_server, exec_gateway = launch.start_server, lifecycle.start_process

    def start_server(argv: Sequence[str], env: Mapping[str, str], handles: Sequence[int]) -> ServerProcess:
        if server.used:
            return exec_server(argv, env, handles)
        return server.use(argv, env, handles)

    def start_gateway(argv: Sequence[str], env: Mapping[str, str], *, ready: int, log: int) -> Callable[[], int]:
        if gateway.used:
            return exec_gateway(argv, env, ready=ready, log=log)
        return gateway.use(argv, env, (ready,), log).wait

    launch.start_server = start_server
    lifecycle.start_process = start_gateway


def prepare_daemon(number: int = 1) -> None:
    """Fork the processes that become the first daemons that this command starts. Call it before any thread starts."""
    daemons, exec_daemon = [_fork(_become_daemon) for _ in range(number)], start.start_process

    def start_daemon(data_dir: Path, *, ready: int, log: int) -> DaemonProcess:
        daemon = next((one for one in daemons if not one.used), None)
        if daemon is None:
            return exec_daemon(data_dir, ready=ready, log=log)
        argv = [sys.executable, "-m", legion.daemon.__name__, "--data-dir", str(data_dir), str(ready)]
        return daemon.use(argv, os.environ, (ready,), log)

    start.start_process = start_daemon


class _Waiting:
    """The forked process, as its daemon handles it."""

    def __init__(self, asks: socket.socket, pid: int) -> None:
        self._asks = asks
        self.pid = pid
        self.used = False
        self.returncode: int | None = None

    def use(
        self, argv: Sequence[str], env: Mapping[str, str], handles: Sequence[int], output: int | None = None
    ) -> _Waiting:
        """Have it become the program. The last words of `argv` are the numbers of the handles."""
        self.used = True
        ask = {"argv": list(argv), "env": dict(env), "output": output is not None}
        sent = list(handles) if output is None else [*handles, output]
        with self._asks:
            socket.send_fds(self._asks, [json.dumps(ask).encode()], sent)
            # As an exec, it is over when the process is the new program.
            self._asks.recv(1)
        return self

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        with contextlib.suppress(ChildProcessError):
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode or 0

    def poll(self) -> int | None:
        """Its exit code, once `wait` has returned."""
        return self.returncode


def _fork(become: Callable[[list[str], list[int]], int]) -> _Waiting:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        code = 0
        with contextlib.suppress(KeyboardInterrupt):
            ours.close()
            code = _wait(theirs, become)
        os._exit(code)
    theirs.close()
    return _Waiting(ours, pid)


def _wait(asks: socket.socket, become: Callable[[list[str], list[int]], int]) -> int:
    """Become the program when asked to; end if the daemon ends before."""
    message, handles, _, _ = socket.recv_fds(asks, _LONGEST, 2)
    if not message:
        return 0
    ask = json.loads(message)
    if ask["output"]:
        output = handles.pop()
        os.dup2(output, 1)
        os.dup2(output, 2)
    argv = [*ask["argv"][: -len(handles)], *map(str, handles)]
    show_command_line(argv)
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
    return become(argv, handles)


def _become_fork_server(_argv: list[str], handles: list[int]) -> int:
    forkserver.main(*handles)
    return 0


def _become_gateway(argv: list[str], _handles: list[int]) -> int:
    sys.argv = argv[argv.index("legion.gateway") :]
    return legion.gateway.__main__.main()


def _become_daemon(argv: list[str], handles: list[int]) -> int:
    """The last word of `argv` is not of the daemon's command line: it has the handle from its environment."""
    (ready,) = handles
    os.environ["LEGION_READY_FD"] = str(ready)
    show_command_line(argv[:-1])
    os.chdir(argv[-2])
    sys.path[0] = argv[-2]
    sys.argv[1:] = argv[argv.index(legion.daemon.__name__) + 1 : -1]
    prepare()
    try:
        runpy.run_module(legion.daemon.__name__, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        return int(end.code or 0)
    return 0


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
