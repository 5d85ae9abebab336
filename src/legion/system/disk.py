"""Free space of disks, and a reserve: a file that is deleted when nothing else has room."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

_MEGABYTE = 1 << 20
_RESERVE = 8 * _MEGABYTE


def free_mb(place: Path) -> int:
    """Megabytes that are free where this folder is."""
    return shutil.disk_usage(place).free // _MEGABYTE


class DiskReserve:
    """A few megabytes for the files that a process needs to go on while the disk is full."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def keep(self) -> None:
        """Hold it. Without room for it there is none."""
        with contextlib.suppress(FileExistsError):
            handle = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                os.posix_fallocate(handle, 0, _RESERVE)
            except OSError:
                self.release()
            finally:
                os.close(handle)

    def release(self) -> bool:
        """Whether there was one."""
        try:
            self._file.unlink()
        except FileNotFoundError:
            return False
        return True
