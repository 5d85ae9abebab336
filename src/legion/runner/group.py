"""The limits of a run's processes: the runner starts them in one group, and reports the limit that was reached."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from legion.system import cgroups
from legion.system.cgroups import GroupLimits, ProcessGroup


class LimitedGroup:
    """The group of one run. Where this machine has none, its programs start without limits, as doctor reports."""

    def __init__(self, run_dir: Path, limits: GroupLimits) -> None:
        self._limits = limits
        home = None if limits.is_empty else cgroups.find()
        self._group: ProcessGroup | None = None if home is None else home.group(run_dir)

    @contextlib.contextmanager
    def joined(self) -> Iterator[None]:
        """The programs that are started inside are limited."""
        with contextlib.ExitStack() as stack:
            if self._group is not None:
                try:
                    # Each time: an empty group may have been swept away.
                    self._group.make(self._limits)
                    stack.enter_context(self._group.joined())
                except OSError as failure:
                    sys.stderr.write(f"The run has no limits of memory and processes: {failure}\n")
            yield

    def close(self, message: str) -> str:
        """Remove the group. Returns the message about the end of the run, with the limit that it reached."""
        if self._group is None:
            return message
        trouble = self._group.trouble(self._limits)
        self._group.remove()
        return f"{message} {trouble}".strip()
