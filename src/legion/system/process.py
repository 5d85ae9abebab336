"""Runs a short program and waits for it. Every subprocess except agents and checks (see `runner`) starts here."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO


class ProgramMissing(Exception):
    """The program is not installed or not on PATH."""


@dataclass(frozen=True, kw_only=True)
class FinishedProcess:
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
        """The program's own text about its failure, for a person."""
        text = (self.stderr or self.stdout).decode("utf-8", "replace").strip()
        return text or f"exit code {self.code}"


def run(
    argv: Sequence[str | os.PathLike[str]],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    timeout: float | None = 600.0,
    lingers: bool = False,
) -> FinishedProcess:
    """Run to the end and collect the output. A timeout kills the program's process group.

    With `lingers` only the program itself is waited for, not what it leaves running in the background.
    """
    command = tuple(os.fspath(one) for one in argv)
    if not lingers:
        return _run(command, cwd, env, stdin, timeout, subprocess.PIPE, subprocess.PIPE)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        ended = _run(command, cwd, env, stdin, timeout, out, err)
        for file in (out, err):
            file.seek(0)
        return replace(ended, stdout=out.read(), stderr=err.read())


def _run(
    command: tuple[str, ...],
    cwd: Path | None,
    env: Mapping[str, str] | None,
    stdin: bytes,
    timeout: float | None,
    out_to: int | IO[bytes],
    err_to: int | IO[bytes],
) -> FinishedProcess:
    try:
        child = subprocess.Popen(
            command,
            cwd=cwd,
            env=dict(env) if env is not None else None,
            stdin=subprocess.PIPE,
            stdout=out_to,
            stderr=err_to,
            start_new_session=True,
        )
    except FileNotFoundError as missing:
        if cwd is not None and not cwd.exists():
            raise
        raise ProgramMissing(command[0]) from missing
    try:
        out, err = child.communicate(stdin, timeout)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        out, err = child.communicate()
        return FinishedProcess(
            argv=command, code=child.returncode, stdout=out or b"", stderr=err or b"", timed_out=True
        )
    return FinishedProcess(argv=command, code=child.returncode, stdout=out or b"", stderr=err or b"")
