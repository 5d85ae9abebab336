"""A person at a terminal: a command of Legion on a pty of its own, what it shows, and keys for it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tests.support.legion import SOURCE, Squad
from tests.support.warm import Forked, warm

PATIENCE = 60.0


class PersonTerminal:
    def __init__(self, *words: str, cwd: Path, env: Mapping[str, str], columns: int = 100, rows: int = 30) -> None:
        """`legion WORDS`."""
        self._master, slave = os.openpty()
        self.resize(columns, rows)
        env = {**env, "TERM": "xterm-256color"}
        self.process: subprocess.Popen[bytes] | Forked
        if (source := warm(SOURCE)).fits(env):
            handles = dict.fromkeys(range(3), slave)
            self.process = source.start("legion", words, env, cwd, handles, terminal=True)
        else:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "legion", *words],
                cwd=cwd,
                env=env,
                stdin=slave,
                stdout=slave,
                stderr=slave,
                start_new_session=True,
                preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            )
        os.close(slave)
        self.seen = b""

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def shows(self, pattern: str, patience: float = PATIENCE) -> str:
        """Wait for it in what comes after the last match."""
        deadline = time.monotonic() + patience
        while not (found := re.search(pattern.encode(), self.seen)):
            assert self._read(deadline), f"{pattern!r} did not appear:\n{self.text}"
        self.seen = self.seen[found.end() :]
        return found[0].decode("utf-8", "replace")

    @property
    def text(self) -> str:
        return self.seen[-4000:].decode("utf-8", "replace")

    def exit_code(self) -> int:
        deadline = time.monotonic() + PATIENCE
        while self._read(deadline):
            pass
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        with contextlib.suppress(OSError):
            os.close(self._master)

    def _read(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return False
        try:
            data = os.read(self._master, 1 << 16)
        except OSError:
            return False
        self.seen += data
        return bool(data)


@contextlib.contextmanager
def terminals(squad: Squad, cwd: Path) -> Iterator[Callable[..., PersonTerminal]]:
    """Opens terminals with commands for this squad, and closes all of them."""
    opened: list[PersonTerminal] = []
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith("LEGION_")},
        "PYTHONPATH": str(SOURCE),
        "LEGION_CONFIG": str(squad.settings),
        **squad.found_by(),
    }

    def at(*words: str, **size: int) -> PersonTerminal:
        opened.append(PersonTerminal(*words, cwd=cwd, env=env, **size))
        return opened[-1]

    yield at
    for one in opened:
        one.close()
