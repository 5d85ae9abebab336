"""The warm process: it has imported all of Legion, and turns into any part of it in a few milliseconds when asked to.

It has one thread and holds nothing but its socket and what it was just handed, so nothing leaks into what it forks.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import sys
import tempfile
import termios
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import legion.daemon.main
import legion.machine
from legion.api import routes
from legion.runner.probe import probe
from legion.system import crash, toolchain
from legion.system.paths import DataDir
from legion.wire.operations import OPERATIONS
from tests.support import large_pages, prefork
from tests.support.warm import LONGEST, ROOM
from tests.support.warm_store import compile_statements

_LATER = (
    "legion.api.machines",
    "legion.daemon.certificate",
    "legion.daemon.second_head",
    "legion.jobs.machines.postgres_queue",
    "legion.store.database.head_news",
    "sqlalchemy.dialects.postgresql.psycopg",
    "sqlalchemy.dialects.sqlite.pysqlite",
    "uvicorn.lifespan.off",
    "uvicorn.loops.auto",
    "uvicorn.protocols.http.auto",
    "uvicorn.protocols.websockets.auto",
)
"""What a daemon imports only when it is about to serve, and a head only for its machines or its Postgres."""

_PACKAGES = ("legion.cli", "legion.machine", "legion.rehearsal")
"""What may be asked for as a program, besides the daemon."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What this process is to be: `python -m MODULE WORDS`."""

    module: str
    words: list[str]
    env: dict[str, str]
    cwd: str
    numbers: list[int]
    handles: list[int]
    """Which handles it has, and under which numbers."""
    terminal: bool
    """Its standard input is the terminal of a session of its own."""


def main(handle: int, life: int | None) -> None:
    """Fork for the asks at a socket. With a session's life, the socket listens: fork for each connection first."""
    gc.disable()
    for name in (*_LATER, *(name for package in _PACKAGES for name in _modules(package))):
        importlib.import_module(name)
    prefork.warm()
    # As every daemon would find out again: bubblewrap comes from the system's folders, whatever the environment.
    probe(None)
    # As every worker of a machine would ask each of these programs for its version again.
    toolchain.fingerprint()
    for row in OPERATIONS.values():
        # Else every daemon compiles the shapes of each route that it is asked for.
        route = routes.route_of(row, routes.perform).route
        assert isinstance(route, routes.LazyRoute)
        route.made()
    compile_statements()
    # A terminal's interrupt is for the tests, which still ask us how their daemons ended.
    on_interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.collect()
    gc.freeze()
    gc.enable()
    large_pages.use()
    asks = socket.socket(fileno=handle)
    if life is not None:
        connected = _fork_for_each(asks, life)
        if connected is None:
            return
        asks = connected
    with asks:
        wanted = _serve(asks)
    if wanted is not None:
        # In the background of a shell it is ignored from the start.
        signal.signal(signal.SIGINT, on_interrupt)
        _become(wanted)


def _modules(package: str) -> list[str]:
    """All of a package but what runs when it is imported."""
    found = pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}.")
    return [module.name for module in found if not module.name.endswith("__main__")]


def _fork_for_each(listening: socket.socket, life: int) -> socket.socket | None:
    """Fork for every worker that connects. It returns in each child, and here when the session is over."""
    while life not in select.select([listening.fileno(), life], [], [])[0]:
        connected, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            os.close(life)
            return connected
        connected.close()
    return None


def _serve(asks: socket.socket) -> Wanted | None:
    """Fork for every ask. It returns in each child, and here when nobody is left who could ask."""
    living: set[int] = set()
    with contextlib.suppress(ConnectionError):
        while True:
            message, handles, _, _ = socket.recv_fds(asks, LONGEST, 3)
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


def _become(wanted: Wanted) -> NoReturn:
    """Everything that an exec would have made so; then it is that program, to its end."""
    _inherit(dict(zip(wanted.numbers, wanted.handles, strict=True)))
    if wanted.terminal:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    _renew_output()
    os.chdir(wanted.cwd)
    sys.path[0] = wanted.cwd
    os.environ.clear()
    os.environ.update(wanted.env)
    # The warm process has looked up its own.
    tempfile.tempdir = None
    crash.load_environment()
    prefork.show_command_line([sys.executable, "-m", wanted.module, *wanted.words])
    sys.argv[1:] = wanted.words
    sys.orig_argv[1:] = ["-m", wanted.module, *wanted.words]
    if wanted.module in (legion.daemon.__name__, legion.machine.__name__):
        prefork.prepare()
    elif wanted.words[:1] == ["serve"]:
        # This command becomes the daemon.
        prefork.prepare()
    elif wanted.words[:1] in (["demo"], ["rehearse"], ["up"]) or _finds_no_daemon(wanted.env):
        # These start one, and another where they kill it.
        prefork.prepare_daemon(2 if "--chaos" in wanted.words else 1)
    _run_and_exit(wanted.module)


def _finds_no_daemon(env: dict[str, str]) -> bool:
    """Whether a command that needs a daemon starts it first."""
    return "LEGION_DATA_DIR" in env and not DataDir(Path(env["LEGION_DATA_DIR"])).daemon_record.exists()


def _run_and_exit(module: str) -> NoReturn:
    """As an interpreter ends, but for taking apart all that the warm process has imported."""
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _inherit(handles: dict[int, int]) -> None:
    """Have these handles under these numbers, and of others only the first three."""
    above = max(*handles, *handles.values()) + 1
    kept = {number: fcntl.fcntl(handle, fcntl.F_DUPFD, above) for number, handle in handles.items()}
    for number, handle in kept.items():
        os.dup2(handle, number)
    last = 2
    for number in sorted(number for number in handles if number > 2):
        os.closerange(last + 1, number)
        last = number
    os.closerange(last + 1, os.sysconf("SC_OPEN_MAX"))


def _renew_output() -> None:
    """Python notes of a stream whether it can seek: those of the warm process lead to other kinds of files."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        old = getattr(sys, name)
        new = open(number, "w", encoding=old.encoding, errors=old.errors, closefd=False)  # noqa: SIM115
        new.reconfigure(line_buffering=old.line_buffering or new.line_buffering)
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if sys.argv[2:3] != [ROOM] else None)
