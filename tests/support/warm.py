"""Daemons and commands for tests, forked from a warm process: none pays for its imports again.

The first worker of a session starts a process that imports Legion. Each worker's own warm process is forked from it.
A forked program gets the arguments, environment, folder, handles and signals of a plain start. Only what the kernel
remembers of an exec differs: /proc shows the first environment of the warm process.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.session import open_life, session_folder, take, under_test

ROOT = Path(__file__).parents[2]
LONGEST = 1 << 17
"""Bytes: an environment and a few words fit."""

ROOM = " " * 4096
"""Where forked programs write their own command lines."""
_READ_AT_START = ("PYTHON", "LC_", "LANG", "TZ", "LD_", "GLIBC_", "MALLOC_")
"""Variables that an interpreter and its libraries look at only once begin so."""


class Forked:
    """A process that came from the warm one, handled as a Popen is."""

    def __init__(self, source: Warm, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._source = source
        self._handle = os.pidfd_open(pid)
        self._lock = threading.Lock()

    def poll(self) -> int | None:
        return self._end_within(0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._end_within(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            signal.pidfd_send_signal(self._handle, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _end_within(self, patience: float | None) -> int | None:
        if self.returncode is None and select.select([self._handle], [], [], patience)[0]:
            with self._lock:
                if self.returncode is None:
                    self.returncode = self._source.reap(self.pid)
                    os.close(self._handle)
        return self.returncode


class Warm:
    """This test process's own warm process, at the other end of a socket.

    It ends with us, however we end, and takes its daemons along.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = dict(env)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        if under_test():
            self._socket = _connected(self._env)
        else:
            self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._process = _started(theirs, self._env)

    def fits(self, env: Mapping[str, str]) -> bool:
        """Whether an interpreter that starts with this environment is one like ours."""
        return _read_at_start(env) == _read_at_start(self._env)

    def start(
        self,
        module: str,
        words: Sequence[str],
        env: Mapping[str, str],
        cwd: Path,
        handles: Mapping[int, int],
        *,
        terminal: bool = False,
    ) -> Forked:
        """`python -m MODULE WORDS`; `handles` are ours by the numbers that they have there.

        With `terminal`, the first of them is the terminal of a session of its own.
        """
        ask = {
            "module": module,
            "words": list(words),
            "env": dict(env),
            "cwd": str(cwd),
            "numbers": list(handles),
            "terminal": terminal,
        }
        return Forked(self, self._ask(ask, list(handles.values())))

    def run(
        self, module: str, words: Sequence[str], env: Mapping[str, str], cwd: Path, *, stdin: str, patience: float
    ) -> subprocess.CompletedProcess[str]:
        """As `subprocess.run` with captured output."""
        argv = [sys.executable, "-m", module, *words]
        with contextlib.ExitStack() as open_files:
            files = [open_files.enter_context(tempfile.TemporaryFile("w+")) for _ in range(3)]
            files[0].write(stdin)
            files[0].seek(0)
            process = self.start(module, words, env, cwd, {number: file.fileno() for number, file in enumerate(files)})
            try:
                code = process.wait(patience)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise subprocess.TimeoutExpired(argv, patience) from None
            output = []
            for file in files[1:]:
                file.seek(0)
                output.append(file.read())
        return subprocess.CompletedProcess(argv, code, *output)

    def reap(self, pid: int) -> int:
        """The exit code of a process that has ended."""
        return self._ask({"reap": pid}, [])

    def close(self) -> None:
        self._socket.close()
        if self._process is not None:
            self._process.wait()

    def _ask(self, ask: Mapping[str, object], handles: Sequence[int]) -> int:
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(ask).encode()], handles)
            answer = self._socket.recv(LONGEST)
        assert answer, "the warm process died"
        return int(answer)


def _connected(env: Mapping[str, str]) -> socket.socket:
    """A connection to the session's process with this environment: it forks a warm process for each."""
    facts = json.dumps(sorted(_read_at_start(env).items()))
    place = session_folder() / f"warm-{hashlib.sha256(facts.encode()).hexdigest()[:8]}"
    starting = take(place.with_suffix(".starting"))
    try:
        if not place.exists():
            listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            listening.bind(str(place))
            listening.listen()
            # It runs until the session ends, and nobody waits for it: without a code, Python would warn about that.
            _started(listening, env, open_life()).returncode = 0
    finally:
        os.close(starting)
    one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    one.connect(str(place))
    return one


def _started(asks: socket.socket, env: Mapping[str, str], life: int | None = None) -> subprocess.Popen[bytes]:
    """With the life of a session it forks for each connection, until the session ends."""
    handles = [asks.fileno()] if life is None else [asks.fileno(), life]
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.support.warm_process", *map(str, handles), ROOM],
            cwd=ROOT,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=handles,
        )
    finally:
        asks.close()
        if life is not None:
            os.close(life)


def _read_at_start(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(_READ_AT_START)}


@functools.cache
def warm(source: Path) -> Warm:
    """The one that has Legion from this folder."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("LEGION_")}
    one = Warm({**env, "PYTHONPATH": str(source)})
    atexit.register(one.close)
    return one
