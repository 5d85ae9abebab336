"""The SDK's transport to a Claude Code that our runner started: JSON lines over the pipes of a sandboxed child."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, CLIConnectionError, McpSdkServerConfig, Transport
from claude_agent_sdk import __version__ as sdk_version
from claude_agent_sdk._internal.transport.subprocess_cli import SubprocessCLITransport
from mcp.server import Server
from mcp.types import CallToolRequestParams, CallToolResult, ListToolsResult, TextContent, Tool

from legion.drivers import Child, Host
from legion.drivers.profile import ToolLink, ToolText
from legion.drivers.turns.daemon_link import DaemonLink

LONGEST_LINE = 64 << 20
"""A longer message is skipped: no tool result of Claude Code comes near it."""
_CHUNK = 1 << 18
_DRAIN_TIMEOUT = 1.0
"""Seconds to read the rest of a dead program's output; another process that holds its pipe may never close it."""


def command_line(program: str, options: ClaudeAgentOptions) -> tuple[str, ...]:
    """The command line that the SDK itself would start. The only use of its internals."""
    prompts = "stdio" if options.can_use_tool else None
    chosen = replace(options, cli_path=program, permission_prompt_tool_name=prompts)
    sdk = SubprocessCLITransport(prompt="", options=chosen)
    return tuple(sdk._build_command())


def environment() -> dict[str, str]:
    """The variables that the SDK adds for the program."""
    return {
        "CLAUDE_CODE_ENTRYPOINT": "sdk-py",
        "CLAUDE_AGENT_SDK_VERSION": sdk_version,
        "CLAUDE_CODE_SDK_READS_SESSION_STATE": "1",
    }


class ProgramEnded(CLIConnectionError):
    """It ended before it read what was written to it."""


class HostTransport(Transport):
    """Starts the program through the runner, and transports lines both ways until it exits."""

    def __init__(
        self,
        host: Host,
        options: ClaudeAgentOptions,
        *,
        on_stderr: Callable[[bytes], None],
        on_message: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        """`on_message` gets each message before the SDK does: inside the SDK one may overtake another."""
        self._host = host
        self._options = options
        self._on_stderr = on_stderr
        self._on_message = on_message
        self._child: Child | None = None
        self._stdin: asyncio.StreamWriter | None = None
        self._stdout: asyncio.StreamReader | None = None
        self._stderr: asyncio.Task[None] | None = None
        self._output_read = asyncio.Event()

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
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(_not_none(self._stdout)), child.output)
        errors = asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(errors), child.errors)
        self._stderr = asyncio.create_task(self._forward_stderr(errors))
        transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, child.input)
        self._stdin = asyncio.StreamWriter(transport, protocol, None, loop)

    async def write(self, data: str) -> None:
        if self._stdin is None or self._stdin.is_closing():
            raise CLIConnectionError("Claude Code no longer reads its input.")
        try:
            self._stdin.write(data.encode())
            await self._stdin.drain()
        except (ConnectionError, BrokenPipeError) as gone:
            raise ProgramEnded("Claude Code has ended.") from gone

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
                self._on_stderr(b"A message that is too long was skipped.\n")
                await self._stdout.readexactly(long.consumed)
                continue
            message = _parse(line)
            if message is not None:
                if self._on_message is not None:
                    self._on_message(message)
                yield message
            elif line.strip():
                self._on_stderr(line)
            if not line.endswith(b"\n"):
                self._output_read.set()
                return

    async def drain(self) -> None:
        """Wait until the output of a dead program was read: its exit may be known before its last output is."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._output_read.wait(), _DRAIN_TIMEOUT)
        await self._drain_stderr()

    async def _drain_stderr(self) -> None:
        if self._stderr is not None:
            await asyncio.wait((self._stderr,), timeout=_DRAIN_TIMEOUT)

    async def end_input(self) -> None:
        if self._stdin is not None:
            self._stdin.close()

    async def close(self) -> None:
        """Closes our ends of the pipes only; the runner ends the program."""
        await self.end_input()
        await self._drain_stderr()
        if self._stderr is not None:
            self._stderr.cancel()

    def is_ready(self) -> bool:
        return self._stdin is not None and not self._stdin.is_closing()

    async def _forward_stderr(self, errors: asyncio.StreamReader) -> None:
        while data := await errors.read(_CHUNK):
            self._on_stderr(data)


def _not_none(reader: asyncio.StreamReader | None) -> asyncio.StreamReader:
    assert reader is not None
    return reader


def _parse(line: bytes) -> dict[str, Any] | None:
    """A message, or None for other output, which belongs into the log."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


# Legion's own tools for Claude Code: an MCP server inside the runner that forwards each call to the daemon.


def server(link: ToolLink) -> McpSdkServerConfig:
    daemon = DaemonLink(link)
    listed = ListToolsResult(tools=[_tool(text) for text in link.tools])

    async def on_list(_context: object, _params: object) -> ListToolsResult:
        return listed

    async def on_call(_context: object, params: CallToolRequestParams) -> CallToolResult:
        answer = await daemon.call(params.name, params.arguments or {})
        return CallToolResult(content=[TextContent(text=answer.text)], is_error=answer.failed)

    made = Server(link.server, on_list_tools=on_list, on_call_tool=on_call)
    return McpSdkServerConfig(type="sdk", name=link.server, instance=made)


def _tool(text: ToolText) -> Tool:
    """Always loaded: Claude Code hides other tools behind a search, and models do not search for unknown tools."""
    return Tool.model_validate(
        {
            "name": text.name,
            "description": text.description,
            "inputSchema": dict(text.schema),
            "_meta": {"anthropic/alwaysLoad": True},
        }
    )
