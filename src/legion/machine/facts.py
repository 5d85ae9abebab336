"""Facts about this machine: its boot, and a digest of the programs that checks use."""

from __future__ import annotations

import functools
import hashlib
import platform
import shutil
import time
from pathlib import Path

from legion.system import process

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_PROGRAMS = ("git", "sh", "make", "cc", "python3", "node", "npm", "go", "cargo", "rustc", "java", "ruby", "php")
_PATIENCE = 20.0


def boot() -> str:
    """Changes with every start of the system."""
    try:
        return _BOOT.read_text().strip()
    except OSError:
        # Elsewhere the moment of the start, to ten seconds.
        return f"{platform.node()}-{int((time.time() - time.monotonic()) // 10)}"


@functools.cache
def toolchain() -> str:
    """A digest of the system and of the versions that its programs report. Equal digests mean equal checks."""
    return hashlib.sha256("\n".join(versions()).encode()).hexdigest()[:16]


def versions() -> list[str]:
    """One line per program, for people too."""
    lines = [f"system {platform.system()} {platform.machine()} {platform.libc_ver()[1]}"]
    for name in _PROGRAMS:
        found = shutil.which(name)
        if found is not None:
            lines.append(f"{name} {_version(name, found)}")
    return lines


def _version(name: str, program: str) -> str:
    asked = {"go": "version", "java": "-version"}.get(name, "--version")
    if name == "sh":
        return str(Path(program).resolve())
    try:
        ended = process.run((program, asked), env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"}, timeout=_PATIENCE)
    except (process.ProgramMissing, OSError):
        return "unknown"
    return (ended.stdout or ended.stderr).decode("utf-8", "replace").strip().partition("\n")[0]
