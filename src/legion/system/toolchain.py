"""The fingerprint of a host's toolchain: a digest of its system and of the programs that checks use."""

from __future__ import annotations

import functools
import hashlib
import platform
import shutil
from pathlib import Path

from legion.system import process

_PROGRAMS = ("git", "sh", "make", "cc", "python3", "node", "npm", "go", "cargo", "rustc", "java", "ruby", "php")
_PATIENCE = 20.0


def fingerprint() -> str:
    """Of this host. Equal ones mean equal checks."""
    return hashlib.sha256("\n".join(versions()).encode()).hexdigest()[:16]


def versions() -> list[str]:
    """One line per program, for people too."""
    lines = [f"system {platform.system()} {platform.machine()} {platform.libc_ver()[1]}"]
    for name in _PROGRAMS:
        found = shutil.which(name)
        if found is not None:
            lines.append(f"{name} {_version(name, found)}")
    return lines


@functools.cache
def _version(name: str, program: str) -> str:
    """As it was when first asked for."""
    asked = {"go": "version", "java": "-version"}.get(name, "--version")
    if name == "sh":
        return str(Path(program).resolve())
    try:
        ended = process.run((program, asked), env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"}, timeout=_PATIENCE)
    except (process.ProgramMissing, OSError):
        return "unknown"
    return (ended.stdout or ended.stderr).decode("utf-8", "replace").strip().partition("\n")[0]
