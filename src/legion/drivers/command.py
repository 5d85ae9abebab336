"""Any program as an agent: its briefing comes on stdin and in a file, and what it leaves in its tree is its change.

Checks run through this driver too, with no briefing. It knows nothing of what the program prints.
"""

from __future__ import annotations

import os
import selectors
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from legion.drivers import Ask, Child, Ending, EndKind, Host, InterruptRequest, Program, StartFailed, StopRequest

CHUNK = 1 << 16


def briefed(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], briefing: Path) -> Program:
    """An agent's program: the briefing on stdin and in the file named by LEGION_BRIEFING (make it readable inside)."""
    return Program(argv=tuple(argv), cwd=cwd, env={**env, "LEGION_BRIEFING": str(briefing)}, stdin=briefing)


class CommandDriver:
    """Starts the program, keeps what it prints, ends it when asked or when its time is over."""

    def run(self, host: Host) -> Ending:
        try:
            child = host.start()
        except StartFailed as failure:
            return Ending(outcome=EndKind.FAILED_TO_START, exit_code=None, message=str(failure))
        return _Watch(host, child).until_end()


class _Watch:
    """One loop over everything that can happen to a program. It sleeps until something does."""

    def __init__(self, host: Host, child: Child) -> None:
        self._host = host
        self._child = child
        self._ending: EndKind | None = None
        self._timeout_at = None if host.timeout is None else time.monotonic() + host.timeout
        self._term_at: float | None = None
        self._kill_at: float | None = None

    def until_end(self) -> Ending:
        code: int | None = None
        failure: StartFailed | None = None
        with selectors.DefaultSelector() as selector:
            for source in (self._child.output, self._host.asks, self._host.deaths):
                selector.register(source, selectors.EVENT_READ)
            while code is None and failure is None:
                for key, _ in selector.select(self._patience()):
                    if key.fileobj is self._child.output and not self._read_output():
                        selector.unregister(self._child.output)
                    elif key.fileobj is self._host.asks:
                        for ask in self._host.asks.take():
                            self._obey(ask)
                self._keep_time()
                try:
                    code = self._child.poll()
                except StartFailed as never:
                    failure = never
        self._child.sweep()
        while self._read_output():
            pass
        return self._verdict(code, failure)

    def _patience(self) -> float | None:
        """Seconds until the next thing that must be done unasked."""
        moments = [moment for moment in (self._timeout_at, self._term_at, self._kill_at) if moment is not None]
        return max(0.0, min(moments) - time.monotonic()) if moments else None

    def _read_output(self) -> bool:
        """Take what is there; False when there is nothing more to come, or nothing now."""
        try:
            data = os.read(self._child.output.fileno(), CHUNK)
        except BlockingIOError:
            return False
        self._host.output.write(data)
        return bool(data)

    def _obey(self, ask: Ask) -> None:
        if isinstance(ask, InterruptRequest):
            self._host.record("interrupted")
            self._child.signal(signal.SIGINT)
            return
        if not isinstance(ask, StopRequest):
            self._host.record("not-heard", ask=ask.name)
            return
        grace = self._host.grace if ask.grace is None else ask.grace
        self._host.record("stopping", grace=grace)
        self._begin_to_end(EndKind.STOPPED, grace)

    def _begin_to_end(self, why: EndKind, grace: float) -> None:
        """SIGINT now, SIGTERM at half time, SIGKILL at the end of the grace; asking again can only shorten it."""
        now = time.monotonic()
        if self._ending is None:
            self._ending = why
            self._timeout_at = None
            self._term_at = now + grace / 2
            self._kill_at = now + grace
            self._child.signal(signal.SIGINT)
        elif self._kill_at is not None and now + grace < self._kill_at:
            self._kill_at = now + grace

    def _keep_time(self) -> None:
        now = time.monotonic()
        if self._timeout_at is not None and now >= self._timeout_at:
            self._host.record("out-of-time", timeout=self._host.timeout)
            self._begin_to_end(EndKind.TIMED_OUT, self._host.grace)
        if self._term_at is not None and now >= self._term_at:
            self._term_at = None
            self._child.signal(signal.SIGTERM)
        if self._kill_at is not None and now >= self._kill_at:
            self._kill_at = None
            self._child.kill()

    def _verdict(self, code: int | None, failure: StartFailed | None) -> Ending:
        if self._ending is EndKind.STOPPED:
            return Ending(outcome=EndKind.STOPPED, exit_code=code, message="The run was stopped as asked.")
        if self._ending is EndKind.TIMED_OUT:
            message = f"The program was ended because its limit of {self._host.timeout:g} s had passed."
            return Ending(outcome=EndKind.TIMED_OUT, exit_code=code, message=message)
        if failure is not None:
            return Ending(outcome=EndKind.FAILED_TO_START, exit_code=None, message=str(failure))
        return Ending(outcome=EndKind.EXITED, exit_code=code, message=f"The program ended with exit code {code}.")
