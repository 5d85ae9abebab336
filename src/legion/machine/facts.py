"""Facts about this machine: its boot."""

from __future__ import annotations

import platform
import time
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")


def boot() -> str:
    """Changes with every start of the system."""
    try:
        return _BOOT.read_text().strip()
    except OSError:
        # Elsewhere the moment of the start, to ten seconds.
        return f"{platform.node()}-{int((time.time() - time.monotonic()) // 10)}"
