"""Room on this machine: memory and files for agents, free space of disks, and a reserve for a full one."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
from pathlib import Path

from legion.system.cgroups import machine_memory

_OF_AGENT = 192 << 20
"""Bytes of memory that an agent program with its runner takes, at the least."""
_FILES_OF_AGENT = 6
"""What the daemon has open for each agent at work: its runner's socket, its journal, a pipe at the start, a request."""
_FILES_BESIDES = 200
_MOST_FILES = 16_384
"""Programs inherit the limit: those that close all files that may be open are still quick."""


def raise_open_files() -> None:
    """Let this process have as many files open as the system allows, within reason."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def agents_by_memory() -> int:
    return machine_memory() // _OF_AGENT


def agents_by_open_files() -> int:
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    files = _MOST_FILES if soft == resource.RLIM_INFINITY else soft
    return max(0, files - _FILES_BESIDES) // _FILES_OF_AGENT


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
