"""Facts about this machine: its boot."""

from __future__ import annotations

import functools
import platform
from pathlib import Path

from legion.system.process import ProgramMissing, run

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_ASK_KERNEL = ("/usr/sbin/sysctl", "-n", "kern.bootsessionuuid")


def boot() -> str:
    """Changes with every start of the system, and with nothing else."""
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return f"{platform.node()}-{_session()}"


@functools.cache
def _session() -> str:
    """As macOS names it; empty elsewhere."""
    try:
        return run(_ASK_KERNEL).text.strip()
    except ProgramMissing:
        return ""
