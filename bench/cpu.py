"""Processor time of a daemon with everything that it starts, counted by the kernel in a control group."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_ENTER = 'echo $$ > "$0" && exec "$@"'
_QUIET = 0.05
"""Share of a core below which a group counts as quiet."""


class CpuGroup:
    """A control group. Runners leave the daemon's process tree, so adding up its children would miss them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def launch(self) -> tuple[str, ...]:
        """The words before a command line that start it in this group; the last one is this interpreter."""
        return ("sh", "-c", _ENTER, str(self._folder / "cgroup.procs"), sys.executable)

    def run(self, *argv: str) -> tuple[str, ...]:
        """The command line that runs `argv` in this group."""
        return ("sh", "-c", _ENTER, str(self._folder / "cgroup.procs"), *argv)

    def seconds(self) -> float:
        """User and system time of every process that is or was in the group."""
        if (self._folder / "cpuacct.usage").exists():
            return int((self._folder / "cpuacct.usage").read_text()) / 1e9
        facts = dict(line.split() for line in (self._folder / "cpu.stat").read_text().splitlines())
        return int(facts["usage_usec"]) / 1e6

    def until_quiet(self, seconds: float = 1.5) -> None:
        """Return when the group has used next to nothing for so long: deferred work belongs to what caused it."""
        before = self.seconds()
        while True:
            time.sleep(seconds)
            now = self.seconds()
            if now - before < _QUIET * seconds:
                return
            before = now


@contextlib.contextmanager
def cpu_group(name: str) -> Iterator[CpuGroup]:
    """A new group, removed in the end. Raises OSError where this user may not make one."""
    root = _CGROUPS / "cpuacct" if (_CGROUPS / "cpuacct").is_dir() else _CGROUPS
    folder = root / f"legion-bench-{os.getpid()}-{name}"
    folder.mkdir()
    try:
        yield CpuGroup(folder)
    finally:
        # A process of the group may still be ending; a group that stays is empty and costs nothing.
        for _ in range(50):
            try:
                folder.rmdir()
                break
            except OSError:
                time.sleep(0.1)
