"""Answers a program's requests for terminals: each is a command in the run's own sandbox, with its output kept.

A terminal has no keyboard and no screen: the protocol only starts, reads, awaits and ends it. It ends with the run.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from acp import RequestError, schema

from legion.drivers import Child, Host, StartFailed

_MOST = 32
"""Terminals that may be open at once."""
_LARGEST_OUTPUT = 4 << 20
_USUAL_OUTPUT = 1 << 20
_CHUNK = 1 << 16
_LOOK_EVERY = 0.05
"""Seconds between two looks whether a command has ended."""


def command_line(command: str, args: Sequence[str]) -> tuple[str, ...]:
    """The words to start. Without arguments the command may be a line of the shell."""
    return (command, *args) if args or not set(command) & set(" \t\n;&|<>$`*?'\"") else ("/bin/sh", "-c", command)


def shown(command: str, args: Sequence[str]) -> str:
    return shlex.join((command, *args)) if args else command


class _Terminal:
    def __init__(self, child: Child, limit: int) -> None:
        self.child = child
        self.limit = limit
        self.output = bytearray()
        self.truncated = False
        self.exit: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def read(self) -> None:
        """Keep what is there; the oldest bytes go first."""
        with contextlib.suppress(BlockingIOError, OSError):
            while data := os.read(self.child.output.fileno(), _CHUNK):
                self.output += data
                if len(self.output) > self.limit:
                    del self.output[: -self.limit]
                    self.truncated = True

    @property
    def text(self) -> str:
        """Cut at a character: the first bytes may be the rest of one."""
        kept = bytes(self.output)
        while self.truncated and kept and kept[0] & 0xC0 == 0x80:
            kept = kept[1:]
        return kept.decode("utf-8", "replace")


class Terminals:
    def __init__(self, host: Host, *, sandboxed: bool, on_look: Callable[[], None]) -> None:
        self._host = host
        self._sandboxed = sandboxed
        self._on_look = on_look
        """A look at one child takes the signal that another has ended."""
        self._open: dict[str, _Terminal] = {}
        self._count = 0
        self._watching: asyncio.Task[None] | None = None

    def create(
        self, argv: tuple[str, ...], *, cwd: Path, env: Mapping[str, str], limit: int | None
    ) -> schema.CreateTerminalResponse:
        """Raises RequestError."""
        if len(self._open) >= _MOST:
            raise _refusal(f"{_MOST} terminals are open; release one first.")
        if env and not self._sandboxed:
            raise _refusal("variables of a terminal need a working sandbox; leave `env` out.")
        program = replace(self._host.program, argv=argv, cwd=cwd, env={**self._host.program.env, **env}, stdin=None)
        try:
            child = self._host.start_aside(program)
        except StartFailed as failure:
            raise _refusal(str(failure)) from failure
        self._count += 1
        id = f"terminal-{self._count}"
        kept = _USUAL_OUTPUT if limit is None else max(1, min(limit, _LARGEST_OUTPUT))
        self._open[id] = _Terminal(child, kept)
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch())
        return schema.CreateTerminalResponse(terminal_id=id)

    def output(self, id: str) -> schema.TerminalOutputResponse:
        terminal = self._find(id)
        terminal.read()
        status = _status(terminal.exit.result()) if terminal.exit.done() else None
        return schema.TerminalOutputResponse(output=terminal.text, truncated=terminal.truncated, exit_status=status)

    async def wait(self, id: str) -> schema.WaitForTerminalExitResponse:
        status = _status(await asyncio.shield(self._find(id).exit))
        return schema.WaitForTerminalExitResponse(exit_code=status.exit_code, signal=status.signal)

    def kill(self, id: str) -> None:
        """Its output can still be read."""
        terminal = self._find(id)
        if not terminal.exit.done():
            terminal.child.kill()

    def release(self, id: str) -> None:
        self.kill(id)
        terminal = self._open[id]
        # A waiter still gets its exit.
        terminal.exit.add_done_callback(lambda _: self._open.pop(id, None))

    async def close(self) -> None:
        """End all of them."""
        for terminal in self._open.values():
            if not terminal.exit.done():
                terminal.child.kill()
        waiting = [one.exit for one in self._open.values()]
        if waiting:
            await asyncio.wait(waiting)

    async def _watch(self) -> None:
        while any(not one.exit.done() for one in self._open.values()):
            for terminal in [one for one in self._open.values() if not one.exit.done()]:
                terminal.read()
                _check(terminal)
            self._on_look()
            await asyncio.sleep(_LOOK_EVERY)

    def _find(self, id: str) -> _Terminal:
        terminal = self._open.get(id)
        if terminal is None:
            raise RequestError.resource_not_found(id)
        return terminal


def _check(terminal: _Terminal) -> None:
    try:
        code = terminal.child.poll()
    except StartFailed as never:
        terminal.output += f"{never}\n".encode()
        code = 127
    if code is not None:
        terminal.read()
        terminal.child.sweep()
        terminal.exit.set_result(code)


def _status(code: int) -> schema.TerminalExitStatus:
    if code > 128:
        return schema.TerminalExitStatus(exit_code=None, signal=str(code - 128))
    return schema.TerminalExitStatus(exit_code=code, signal=None)


def _refusal(details: str) -> RequestError:
    return RequestError.invalid_params({"details": details})
