"""The SDK's line to a Claude Code that our runner started: JSON lines over the pipes of a sandboxed child."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, CLIConnectionError, Transport
from claude_agent_sdk import __version__ as sdk_version
from claude_agent_sdk._internal.transport.subprocess_cli import SubprocessCLITransport

from legion.drivers import Child, Host

LONGEST_LINE = 64 << 20
"""A longer message is passed over: no tool result that Claude Code sends comes near it."""
_CHUNK = 1 << 18
_LAST_GASP = 1.0
"""Seconds in which what a dead program printed is read; something else that holds its pipe may never close it."""


def command_line(program: str, options: ClaudeAgentOptions) -> tuple[str, ...]:
    """The command line that the SDK itself would start. The only place that reaches into it."""
    prompts = "stdio" if options.can_use_tool else None
    chosen = replace(options, cli_path=program, permission_prompt_tool_name=prompts)
    sdk = SubprocessCLITransport(prompt="", options=chosen)
    return tuple(sdk._build_command())


def environment() -> dict[str, str]:
    """What the SDK adds for the program."""
    return {
        "CLAUDE_CODE_ENTRYPOINT": "sdk-py",
        "CLAUDE_AGENT_SDK_VERSION": sdk_version,
        "CLAUDE_CODE_SDK_READS_SESSION_STATE": "1",
    }


class HostTransport(Transport):
    """Starts the program through the runner, and carries lines both ways until it ends."""

    def __init__(
        self,
        host: Host,
        options: ClaudeAgentOptions,
        *,
        complain: Callable[[bytes], None],
        hear: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        """`hear` is called with each message before the SDK has it: there one may overtake another."""
        self._host = host
        self._options = options
        self._complain = complain
        self._hear = hear
        self._child: Child | None = None
        self._stdin: asyncio.StreamWriter | None = None
        self._stdout: asyncio.StreamReader | None = None
        self._stderr: asyncio.Task[None] | None = None
        self._read_to_the_end = asyncio.Event()

    @property
    def started(self) -> bool:
        return self._child is not None

    @property
    def child(self) -> Child:
        assert self._child is not None, "connected"
        return self._child

    async def connect(self) -> None:
        """Start the program. Raises StartFailed."""
        program = self._host.program
        child = self._host.start(
            replace(
                program,
                argv=command_line(program.argv[0], self._options),
                env={**program.env, **environment()},
                talks=True,
            )
        )
        self._child = child
        assert child.input is not None, "it talks"
        assert child.errors is not None, "it talks"
        loop = asyncio.get_running_loop()
        self._stdout = asyncio.StreamReader(limit=LONGEST_LINE)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(_given(self._stdout)), child.output)
        errors = asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(errors), child.errors)
        self._stderr = asyncio.create_task(self._pass_on(errors))
        transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, child.input)
        self._stdin = asyncio.StreamWriter(transport, protocol, None, loop)

    async def write(self, data: str) -> None:
        if self._stdin is None or self._stdin.is_closing():
            raise CLIConnectionError("Claude Code does not listen any more.")
        try:
            self._stdin.write(data.encode())
            await self._stdin.drain()
        except (ConnectionError, BrokenPipeError) as gone:
            raise CLIConnectionError("Claude Code has ended.") from gone

    def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        return self._messages()

    async def _messages(self) -> AsyncIterator[dict[str, Any]]:
        assert self._stdout is not None, "connected"
        while True:
            try:
                line = await self._stdout.readuntil(b"\n")
            except asyncio.IncompleteReadError as end:
                line = end.partial
            except asyncio.LimitOverrunError as long:
                self._complain(b"A message that is too long was passed over.\n")
                await self._stdout.readexactly(long.consumed)
                continue
            message = _understood(line)
            if message is not None:
                if self._hear is not None:
                    self._hear(message)
                yield message
            elif line.strip():
                self._complain(line)
            if not line.endswith(b"\n"):
                self._read_to_the_end.set()
                return

    async def hear_out(self) -> None:
        """Until what a dead program had printed was passed on: its death may be known before its last words are."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._read_to_the_end.wait(), _LAST_GASP)
        await self._hear_out_errors()

    async def _hear_out_errors(self) -> None:
        if self._stderr is not None:
            await asyncio.wait((self._stderr,), timeout=_LAST_GASP)

    async def end_input(self) -> None:
        if self._stdin is not None:
            self._stdin.close()

    async def close(self) -> None:
        """Our ends of the pipes only; the runner ends the program."""
        await self.end_input()
        await self._hear_out_errors()
        if self._stderr is not None:
            self._stderr.cancel()

    def is_ready(self) -> bool:
        return self._stdin is not None and not self._stdin.is_closing()

    async def _pass_on(self, errors: asyncio.StreamReader) -> None:
        while data := await errors.read(_CHUNK):
            self._complain(data)


def _given(reader: asyncio.StreamReader | None) -> asyncio.StreamReader:
    assert reader is not None
    return reader


def _understood(line: bytes) -> dict[str, Any] | None:
    """A message, or None for what is no JSON object: it belongs into the log, not into the conversation."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None
