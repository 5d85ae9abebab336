"""Which Claude Code is started: the person's own where it is new enough, else the one that came with the SDK."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

OLDEST = (2, 1, 248)
"""Before this release prompts could not be sent word for word."""

_PATIENCE = 20.0


@dataclass(frozen=True, kw_only=True)
class ClaudeProgram:
    path: Path
    version: str
    bundled: bool
    passed_over: str = ""
    """Why the person's own one is not used, where there is one."""


class NoClaude(Exception):
    """No usable Claude Code; the message says what to do."""


def find(wanted: str = "") -> ClaudeProgram:
    """The program named in the settings, else the one on PATH, else the bundled one. Raises NoClaude."""
    if wanted:
        named = shutil.which(str(Path(wanted).expanduser()))
        if named is None:
            raise NoClaude(f"There is no program {wanted}: mend `claude.program` in your settings, or remove it.")
        return _judged(Path(named))
    own = shutil.which("claude")
    try:
        if own is not None:
            return _judged(Path(own))
        complaint = ""
    except NoClaude as unfit:
        complaint = str(unfit)
    bundled = bundled_program()
    if bundled is None:
        raise NoClaude(complaint or "Claude Code is not installed: install it, or reinstall claude-agent-sdk.")
    return ClaudeProgram(path=bundled, version=version_of(bundled), bundled=True, passed_over=complaint)


def bundled_program() -> Path | None:
    spec = importlib.util.find_spec("claude_agent_sdk")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / "_bundled" / "claude"
    return path if path.is_file() else None


def version_of(path: Path) -> str:
    """As it says itself. Raises NoClaude where it says nothing sensible."""
    stat = path.stat()
    return _asked(str(path), stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=16)
def _asked(path: str, _changed: int, _size: int) -> str:
    """Asked once for every program file: starting it takes a moment."""
    env = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    env["HOME"] = "/nonexistent"
    try:
        said = subprocess.run(
            [path, "--version"], env=env, capture_output=True, stdin=subprocess.DEVNULL, timeout=_PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as trouble:
        raise NoClaude(f"{path} does not run ({trouble}): install Claude Code again.") from trouble
    found = re.search(rb"(\d+)\.(\d+)\.(\d+)", said.stdout)
    if said.returncode != 0 or found is None:
        raise NoClaude(f"{path} does not tell its version: install Claude Code again.")
    return found[0].decode()


def _judged(path: Path) -> ClaudeProgram:
    version = version_of(path)
    if tuple(int(part) for part in version.split(".")) < OLDEST:
        oldest = ".".join(str(part) for part in OLDEST)
        raise NoClaude(f"{path} is version {version}, and {oldest} is needed: update it with `claude update`.")
    return ClaudeProgram(path=path, version=version, bundled=False)
