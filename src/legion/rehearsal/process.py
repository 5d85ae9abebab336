"""Starts the rehearsal process, waits until it listens, and ends it. Does not import the server."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from legion.rehearsal.protocol import log
from legion.rehearsal.protocol.log import LogLine
from legion.rehearsal.script.script import RehearsalNotStarted

PATIENCE = 60.0
"""Seconds to wait for the start; it takes less than one."""
_GRACE = 10.0


@dataclass(frozen=True, kw_only=True)
class Playing:
    """A rehearsal that listens."""

    url: str
    pid: int
    log: Path

    def lines(self) -> list[LogLine]:
        return log.read(self.log)


@contextlib.contextmanager
def playing(
    scripts: Path, folder: Path, *, default: str | None = None, chaos: int | None = None, cached: bool = False
) -> Iterator[Playing]:
    """Serve these scripts during the block; log and output of the process go to `folder`."""
    process, playing = start(scripts, folder, default=default, chaos=chaos, cached=cached)
    try:
        yield playing
    finally:
        end(process)


def start(
    scripts: Path,
    folder: Path,
    *,
    default: str | None = None,
    port: int = 0,
    chaos: int | None = None,
    cached: bool = False,
) -> tuple[subprocess.Popen[bytes], Playing]:
    """Start the process, in a session of its own: a Ctrl-C for the starting process does not reach it."""
    ready, output = folder / "rehearsal.json", folder / "rehearsal.out"
    ready.unlink(missing_ok=True)
    argv = [sys.executable, "-P", "-m", "legion.rehearsal", str(scripts), "--port", str(port), "--ready", str(ready)]
    argv += ["--log", str(folder / "rehearsal.jsonl"), *(["--default", default] if default is not None else [])]
    argv += ["--chaos", str(chaos)] if chaos is not None else []
    argv += ["--cached"] if cached else []
    with output.open("ab") as out:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True, env=_environment()
        )
    try:
        _wait_until_ready(process, ready, output)
    except BaseException:
        # Also at a Ctrl-C: the process is in a session of its own and would stay.
        end(process)
        raise
    facts = json.loads(ready.read_text("utf-8"))
    return process, Playing(url=facts["url"], pid=facts["pid"], log=folder / "rehearsal.jsonl")


def _wait_until_ready(process: subprocess.Popen[bytes], ready: Path, output: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while not ready.exists():
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.02)
        if process.returncode is not None or time.monotonic() > deadline:
            last = " ".join(output.read_text("utf-8", "replace").split()[-60:])
            raise RehearsalNotStarted(f"The rehearsal did not start ({last or 'it printed nothing'}): read {output}.")


def end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _environment() -> dict[str, str]:
    """With this Legion before any other, wherever it was imported from."""
    here = str(Path(__file__).parents[2])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH"))))}
