"""How fast the machine is while something is measured: whoever shares its processors makes every second shorter."""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

_BEAT = """
import time
while True:
    began = time.thread_time()
    sum(number * number for number in range(15000))
    print(time.thread_time() - began, flush=True)
    time.sleep(0.1)
"""


class Pace:
    """Ten times a second the same piece of work, and how long it took each time."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def beats(self) -> int:
        return len(self._all())

    def usual(self) -> float:
        return statistics.median(self._all())

    def since(self, beat: int) -> float:
        return statistics.mean(self._all()[beat:])

    def _all(self) -> list[float]:
        # The last line may be half written.
        return [float(line) for line in self._file.read_text().splitlines(keepends=True) if line.endswith("\n")]


@contextlib.contextmanager
def pace(folder: Path) -> Iterator[Pace]:
    file = folder / "pace"
    with file.open("w") as out, subprocess.Popen([sys.executable, "-c", _BEAT], stdout=out) as beating:
        try:
            yield Pace(file)
        finally:
            beating.kill()
