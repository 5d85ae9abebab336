"""A link that can be cut, slowed and broken: an address in front of another one, served by a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from types import TracebackType

from legion.demo.machines.link_state import CUT, GOOD, LinkState


class BadLink:
    """Forwards connections to `port`; connect to `self.port` instead. Good until `change`."""

    def __init__(self, port: int, *, host: str = "127.0.0.1", listen: str = "127.0.0.1", seed: int = 0) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "legion.demo.machines.link_process", listen, host, str(port), str(seed)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.port = int(self._read())

    def change(self, state: LinkState) -> None:
        """Returns when the state holds."""
        self._ask(json.dumps(state.as_json()))

    def cut(self) -> None:
        self.change(CUT)

    def heal(self) -> None:
        self.change(GOOD)

    def break_connections(self) -> None:
        """Reset every connection, as a router does that was restarted. New ones are accepted."""
        self._ask("break")

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()

    def _ask(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        self._read()

    def _read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"The link's process ended with {self._process.wait(10)}.")
        return line.strip()

    def __enter__(self) -> BadLink:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
