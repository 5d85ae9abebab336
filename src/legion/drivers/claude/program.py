"""Finds the Claude Code to start: the person's own where it is new enough, else the one that came with the SDK."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

from legion.drivers.profile import ProgramFile, ProgramUnusable

OLDEST = (2, 1, 248)
"""Earlier releases could not send prompts verbatim."""

_VERSION_TIMEOUT = 60.0
"""Seconds. The file has hundreds of megabytes, which a busy machine may have to read from its disk first."""


def find(wanted: str = "") -> ProgramFile:
    """The program named in the settings, else the one on PATH, else the bundled one. Raises ProgramUnusable."""
    if wanted:
        named = shutil.which(str(Path(wanted).expanduser()))
        if named is None:
            raise ProgramUnusable(f"There is no program {wanted}: fix `claude.program` in your settings, or remove it.")
        return _new_enough(Path(named))
    own = shutil.which("claude")
    try:
        if own is not None:
            return _new_enough(Path(own))
        complaint = ""
    except ProgramUnusable as unfit:
        complaint = str(unfit)
    bundled = bundled_program()
    if bundled is None:
        raise ProgramUnusable(complaint or "Claude Code is not installed: install it, or reinstall claude-agent-sdk.")
    return ProgramFile(path=bundled, version=version_of(bundled), bundled=True, passed_over=complaint)


def bundled_program() -> Path | None:
    spec = importlib.util.find_spec("claude_agent_sdk")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / "_bundled" / "claude"
    return path if path.is_file() else None


def version_of(path: Path) -> str:
    """As the program reports it; empty where it does not in time on a busy machine. Raises ProgramUnusable where it
    reports none.
    """
    stat = path.stat()
    try:
        return _read_version(str(path), stat.st_mtime_ns, stat.st_size)
    except subprocess.TimeoutExpired:
        return ""


@lru_cache(maxsize=16)
def _read_version(path: str, _changed: int, _size: int) -> str:
    """Read once for every program file: starting the program takes a moment."""
    env = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    env["HOME"] = "/nonexistent"
    try:
        done = subprocess.run(
            [path, "--version"],
            env=env,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_VERSION_TIMEOUT,
            check=False,
        )
    except OSError as trouble:
        raise ProgramUnusable(f"{path} does not run ({trouble.strerror}): install Claude Code again.") from trouble
    found = re.search(rb"(\d+)\.(\d+)\.(\d+)", done.stdout)
    if done.returncode != 0 or found is None:
        raise ProgramUnusable(f"{path} does not report its version: install Claude Code again.")
    return found[0].decode()


def _new_enough(path: Path) -> ProgramFile:
    version = version_of(path)
    if version and tuple(int(part) for part in version.split(".")) < OLDEST:
        oldest = ".".join(str(part) for part in OLDEST)
        raise ProgramUnusable(f"{path} is version {version}, and {oldest} is needed: update it with `claude update`.")
    return ProgramFile(path=path, version=version, bundled=False)
