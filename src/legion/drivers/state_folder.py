"""Folders inside an agent's state folder, where the agent can write: links in their place are never followed."""

from __future__ import annotations

import os
import time
from pathlib import Path


def own_folder(state: Path, name: str) -> Path:
    """A real folder of this name. The agent could have put a link to a folder of the person's in its place."""
    folder = state / name
    if folder.is_symlink() or not folder.is_dir():
        put_aside(folder)
        folder.mkdir(mode=0o700)
    folder.chmod(0o700)
    return folder


def put_aside(path: Path) -> None:
    """Rename whatever an agent left there, a link included."""
    if os.path.lexists(path):
        path.rename(path.with_name(f"{path.name}.{time.time_ns()}.unused"))
