"""Finds the daemon for the fast paths: by its socket alone, without the modules that find it in every case."""

from __future__ import annotations

import os

from legion.client.http import DaemonAddress, DaemonConnection


def data_dir() -> str | None:
    """The folder that `system.paths` would choose; None for a relative one, which only that module resolves."""
    folder, data, home = (os.environ.get(name) for name in ("LEGION_DATA_DIR", "XDG_DATA_HOME", "HOME"))
    if not folder:
        folder = f"{data}/legion" if data else f"{home}/.local/share/legion" if home else ""
    return folder if folder.startswith("/") else None


def connection() -> DaemonConnection | None:
    """A connection to the daemon of the person's data folder, if its socket and token exist."""
    folder = data_dir()
    socket = f"{folder}/api.sock"
    named = os.environ.get("LEGION_URL") or os.environ.get("LEGION_SESSION_ID")
    if folder is None or named or not os.access(socket, os.W_OK):
        return None
    try:
        with open(f"{folder}/token") as file:  # noqa: PTH123  # importing pathlib takes longer than all of this
            return DaemonConnection(DaemonAddress(socket=socket, token=file.read().strip()))
    except OSError:
        return None
