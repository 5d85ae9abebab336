"""A scripted model in a process of its own, forked from the warm process; else as `legion.rehearsal.process` has it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from legion.rehearsal import process
from legion.rehearsal.process import Playing
from tests.support.legion import SOURCE
from tests.support.warm import warm

_LOOK_AGAIN = 0.02


@contextlib.contextmanager
def playing(
    scripts: Path, folder: Path, *, default: str | None = None, chaos: int | None = None, cached: bool = False
) -> Iterator[Playing]:
    """Play these scripts for the length of a block; `folder` takes the log and the output of the process."""
    env = {**os.environ, "PYTHONPATH": str(SOURCE)}
    if not (source := warm(SOURCE)).fits(env):
        with process.playing(scripts, folder, default=default, chaos=chaos, cached=cached) as plain:
            yield plain
        return
    ready, log = folder / "rehearsal.json", folder / "rehearsal.jsonl"
    words = [str(scripts), "--port", "0", "--ready", str(ready), "--log", str(log)]
    words += ["--default", default] if default is not None else []
    words += ["--chaos", str(chaos)] if chaos is not None else []
    words += ["--cached"] if cached else []
    ready.unlink(missing_ok=True)
    with (folder / "rehearsal.out").open("ab") as output:
        handles = {1: output.fileno(), 2: output.fileno()}
        forked = source.start("legion.rehearsal", words, env, Path.cwd(), handles)
    try:
        while not ready.exists():
            with contextlib.suppress(subprocess.TimeoutExpired):
                forked.wait(_LOOK_AGAIN)
                raise AssertionError(f"the rehearsal did not start:\n{(folder / 'rehearsal.out').read_text()}")
        facts = json.loads(ready.read_text())
        yield Playing(url=facts["url"], pid=facts["pid"], log=log)
    finally:
        forked.kill()
        forked.wait()
