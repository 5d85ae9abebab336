"""Run tests and write the slowest of them to tests/DURATIONS.txt: `python tools/durations.py [PATH ...]`.

Without paths it runs the complete suite. Run it on a machine that does nothing else, and commit the file.
"""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILE = ROOT / "tests" / "DURATIONS.txt"
COUNT = 30
_LINE = re.compile(r"^\s*([0-9.]+)s (call|setup|teardown)\s+(\S.*)$")


def main(paths: list[str]) -> int:
    chosen = subprocess.run([ROOT / "tools/test-workers.sh"], capture_output=True, text=True, check=True)
    workers = chosen.stdout.strip()
    argv = [sys.executable, "-m", "pytest", "-n", workers, "--dist", "worksteal", f"--durations={COUNT}", *paths]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True) as tests:
        assert tests.stdout is not None
        lines = []
        for line in tests.stdout:
            sys.stdout.write(line)
            lines.append(line.rstrip())
    slowest = [found for line in lines if (found := _LINE.match(line))]
    if not slowest:
        sys.stderr.write("pytest named no durations, so that tests/DURATIONS.txt stays as it is.\n")
        return tests.returncode or 1
    FILE.write_text("\n".join(_page(slowest, lines[-1].strip("= "), workers, paths)) + "\n")
    return tests.returncode


def _page(slowest: list[re.Match[str]], summary: str, workers: str, paths: list[str]) -> list[str]:
    which = " ".join(paths) or "the complete suite"
    return [
        f"The {len(slowest)} slowest of {which}, written by tools/durations.py.",
        f"{summary}; {workers} workers, {platform.machine()}, Python {platform.python_version()}",
        "",
        *(f"{float(found[1]):7.2f} s  {found[2]:8}  {found[3]}" for found in slowest),
    ]


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
