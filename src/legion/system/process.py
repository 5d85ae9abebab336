"""The one way to run a short program and wait for it.

Programs that outlive us (agents, checks) are started by `runner`; everything else goes through `run`.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


class ProgramMissing(Exception):
    """The program is not installed or not on PATH."""


@dataclass(frozen=True, kw_only=True)
class Finished:
    """How a program ended. `code` is negative for a signal, as in subprocess."""

    argv: tuple[str, ...]
    code: int
    stdout: bytes
    stderr: bytes
    timed_out: bool = False

    @property
    def text(self) -> str:
        return self.stdout.decode("utf-8", "replace")

    @property
    def complaint(self) -> str:
        """What the program said about its failure, for a person."""
        said = (self.stderr or self.stdout).decode("utf-8", "replace").strip()
        return said or f"exit code {self.code}"


def run(
    argv: Sequence[str | os.PathLike[str]],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    timeout: float | None = 600.0,
) -> Finished:
    """Run to the end and collect everything. A timeout kills the program's whole process group."""
    words = tuple(os.fspath(word) for word in argv)
    try:
        child = subprocess.Popen(
            words,
            cwd=cwd,
            env=dict(env) if env is not None else None,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except FileNotFoundError as missing:
        if cwd is not None and not cwd.exists():
            raise
        raise ProgramMissing(words[0]) from missing
    try:
        out, err = child.communicate(stdin, timeout)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        out, err = child.communicate()
        return Finished(argv=words, code=child.returncode, stdout=out, stderr=err, timed_out=True)
    return Finished(argv=words, code=child.returncode, stdout=out, stderr=err)
