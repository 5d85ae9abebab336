"""The daemon's side of the gateway's process: find, start, replace, end. Adopt or start, never just start.

Whether one lives is told by its lock, so a new daemon sees what the last one saw. Any thread may call anything here.
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
from pathlib import Path

import legion
from legion.domain.errors import LegionError, Retryable
from legion.gateway.files.address import GatewayAddress, announced
from legion.gateway.files.folder import GatewayFolder
from legion.system import files

DEFAULT_PORT = 6671
IDLE = 300.0
"""Seconds without a byte from a provider after which its answer is given up."""
GRACE = 10.0
"""Seconds that running answers get to end when the gateway is asked to end."""
_START_PATIENCE = 60.0
_END_PATIENCE = GRACE + 20.0
_LOOK_AGAIN = 0.02


class GatewayFailed(LegionError):
    code = "gateway_failed"


def ensure(folder: GatewayFolder, port: int = DEFAULT_PORT, *, idle: float = IDLE) -> GatewayAddress:
    """The living gateway of the folder, or a new one. It outlives whoever asked."""
    folder.prepare()
    with files.waiting_lock(folder.starting):
        deadline = time.monotonic() + _START_PATIENCE
        while time.monotonic() < deadline:
            found = address(folder)
            if found is not None:
                return found
            if not files.is_locked(folder.lock):
                return _start(folder, port, idle)
            # It is about to announce itself, or about to be gone; a lock cannot be waited for with a deadline.
            time.sleep(_LOOK_AGAIN)
    raise Retryable(f"A gateway holds {folder.lock} and does not listen: look into {folder.log}.")


def address(folder: GatewayFolder) -> GatewayAddress | None:
    """Where the living gateway listens; None if there is none, or it is ending."""
    found = announced(folder)
    return found if found is not None and files.is_locked(folder.lock) else None


def end(folder: GatewayFolder) -> bool:
    """Have it end, and wait until it is gone: running answers get some seconds. False if there was none."""
    found = address(folder)
    if found is None:
        return False
    with contextlib.suppress(ProcessLookupError):
        os.kill(found.pid, signal.SIGTERM)
    deadline = time.monotonic() + _END_PATIENCE
    while files.is_locked(folder.lock):
        if time.monotonic() > deadline:
            raise Retryable(f"The gateway (pid {found.pid}) does not end: look into {folder.log} or kill it.")
        time.sleep(_LOOK_AGAIN)
    return True


def replace(folder: GatewayFolder, port: int = DEFAULT_PORT, *, idle: float = IDLE) -> GatewayAddress:
    """A new gateway in the place of the living one, with the environment of this process; agents find it there."""
    folder.prepare()
    # Held all the time: whoever else wants a gateway gets the new one.
    with files.waiting_lock(folder.starting):
        end(folder)
        return _start(folder, port, idle)


def _start(folder: GatewayFolder, port: int, idle: float) -> GatewayAddress:
    reading, writing = os.pipe()
    log = os.open(folder.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        child = subprocess.Popen(
            [
                *(sys.executable, "-P", "-m", "legion.gateway", str(folder.root)),
                *("--port", str(port), "--idle", str(idle), "--ready", str(writing)),
            ],
            cwd="/",
            # All of it: a key may lie in any variable, and TLS and the keyring have theirs.
            env={**os.environ, "PYTHONPATH": _libraries()},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(writing,),
            start_new_session=True,
        )
    finally:
        os.close(writing)
        os.close(log)
    # It outlives us; if we outlive it, it must not stay behind as a zombie.
    threading.Thread(target=child.wait, daemon=True, name="gateway-reaper").start()
    with os.fdopen(reading, "rb") as answers:
        said = _first_line(answers.fileno())
    found = address(folder) if said == "ready" else None
    if found is None:
        sentence = said.removeprefix("error:").strip()
        raise GatewayFailed(sentence or f"The gateway died while it started: the last lines of {folder.log} say why.")
    return found


def _libraries() -> str:
    """This Legion before any other, and whatever else the person's Python is told to look at."""
    here = str(Path(legion.__file__).parent.parent)
    return os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH"))))


def _first_line(answers: int) -> str:
    """What the new process says about its start; empty if it died without a word."""
    said = b""
    deadline = time.monotonic() + _START_PATIENCE
    while not said.endswith(b"\n"):
        if not select.select([answers], [], [], max(0.0, deadline - time.monotonic()))[0]:
            return f"error: The gateway did not start within {_START_PATIENCE:g} s: is the machine overloaded?"
        piece = os.read(answers, 4096)
        if not piece:
            break
        said += piece
    return said.decode("utf-8", "replace").strip()
