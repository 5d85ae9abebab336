"""Finds, starts, replaces and ends the gateway process, for the daemon. Adopts a running gateway before it starts one.

The lock shows whether a gateway runs, so a new daemon sees the same as the last one. Every function is thread-safe.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import legion
from legion.domain.errors import LegionError, Retryable
from legion.gateway.files.address import GatewayAddress, announced
from legion.gateway.files.folder import GatewayFolder
from legion.system import files

DEFAULT_PORT = 6671
IDLE = 300.0
"""Seconds without a byte from a provider after which its answer counts as broken."""
GRACE = 10.0
"""Seconds that open answers get when the gateway ends."""
RECEIVE = 60.0
"""Seconds within which the head and the body of a request must each arrive."""
_START_PATIENCE = 60.0
_END_PATIENCE = GRACE + 20.0
_POLL = 0.02


class GatewayFailed(LegionError):
    code = "gateway_failed"


def ensure(folder: GatewayFolder, port: int = DEFAULT_PORT, *, idle: float = IDLE) -> GatewayAddress:
    """The running gateway of the folder, or a new one. It survives this process."""
    folder.prepare()
    with files.waiting_lock(folder.starting):
        deadline = time.monotonic() + _START_PATIENCE
        while time.monotonic() < deadline:
            found = address(folder)
            if found is not None:
                return found
            if not files.is_locked(folder.lock):
                return _start(folder, port, idle)
            # It is about to announce itself, or about to end. A lock cannot be waited for with a deadline.
            time.sleep(_POLL)
    raise Retryable(f"A gateway holds {folder.lock} and does not listen: read {folder.log}.")


def address(folder: GatewayFolder) -> GatewayAddress | None:
    """The address of the running gateway; None if none runs, or it is ending."""
    found = announced(folder)
    return found if found is not None and files.is_locked(folder.lock) else None


def end(folder: GatewayFolder) -> bool:
    """End the gateway and wait until it is gone; open answers get some seconds. False if none ran."""
    found = address(folder)
    if found is None:
        return False
    with contextlib.suppress(ProcessLookupError):
        os.kill(found.pid, signal.SIGTERM)
    deadline = time.monotonic() + _END_PATIENCE
    while files.is_locked(folder.lock):
        if time.monotonic() > deadline:
            raise Retryable(
                f"The gateway (pid {found.pid}) does not end: read {folder.log}, or run `kill -9 {found.pid}`."
            )
        time.sleep(_POLL)
    return True


def replace(folder: GatewayFolder, port: int = DEFAULT_PORT, *, idle: float = IDLE) -> GatewayAddress:
    """Replace the running gateway by a new one at the same address, with the environment of this process."""
    folder.prepare()
    # Hold the lock throughout: every other caller gets the new gateway.
    with files.waiting_lock(folder.starting):
        end(folder)
        return _start(folder, port, idle)


def _start(folder: GatewayFolder, port: int, idle: float) -> GatewayAddress:
    reading, writing = os.pipe()
    log = os.open(folder.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    argv = [
        *(sys.executable, "-P", "-m", "legion.gateway", str(folder.root)),
        *("--port", str(port), "--idle", str(idle), "--ready", str(writing)),
    ]
    # All of it: any variable may hold a key, and TLS and the keyring have their own.
    env = {**os.environ, "PYTHONPATH": _libraries()}
    try:
        wait = start_process(argv, env, ready=writing, log=log)
    finally:
        os.close(writing)
        os.close(log)
    # Usually it survives this process. If it ends first, it must not stay as a zombie.
    threading.Thread(target=wait, daemon=True, name="gateway-reaper").start()
    with os.fdopen(reading, "rb") as answers:
        line = _first_line(answers.fileno())
    found = address(folder) if line == "ready" else None
    if found is None:
        sentence = line.removeprefix("error:").strip()
        raise GatewayFailed(sentence or f"The gateway died while it started: read the last lines of {folder.log}.")
    return found


def start_process(argv: Sequence[str], env: Mapping[str, str], *, ready: int, log: int) -> Callable[[], int]:
    """Start the gateway as a session of its own that inherits `ready` and writes to `log`. Returns its `wait`."""
    return subprocess.Popen(
        argv,
        cwd="/",
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        pass_fds=(ready,),
        start_new_session=True,
    ).wait


def _libraries() -> str:
    """PYTHONPATH with this Legion before any other, then the person's own."""
    here = str(Path(legion.__file__).parent.parent)
    return os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH"))))


def _first_line(answers: int) -> str:
    """The line that the new process reports about its start; empty if it died first."""
    line = b""
    deadline = time.monotonic() + _START_PATIENCE
    while not line.endswith(b"\n"):
        if not select.select([answers], [], [], max(0.0, deadline - time.monotonic()))[0]:
            return f"error: The gateway did not start within {_START_PATIENCE:g} s: is the machine overloaded?"
        piece = os.read(answers, 4096)
        if not piece:
            break
        line += piece
    return line.decode("utf-8", "replace").strip()
