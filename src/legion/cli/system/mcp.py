"""`legion mcp`: how a program of the person's own reaches Legion's tools."""

from __future__ import annotations

import shlex

from legion.cli.base.command import CommandCall, command
from legion.cli.base.shapes import McpShape
from legion.client.discovery import read_record
from legion.system.paths import DataDir
from legion.wire.errors import LegionError


@command("mcp", example="legion mcp")
def mcp(call: CommandCall) -> None:
    """Where Legion's tools are served over MCP, and the command that makes them known to your own Claude Code."""
    call.legion()
    record = read_record(call.data_dir)
    if record is None or not record.mcp:
        raise LegionError("The daemon that answers is not this machine's: run `legion mcp` where it runs.")
    found = McpShape(url=record.mcp, token_file=str(DataDir(call.data_dir).token))
    secret = f'"Authorization: Bearer $(cat {shlex.quote(found.token_file)})"'
    call.answer(
        found,
        lambda: [found.url, f"claude mcp add --transport http legion {found.url} --header {secret}"],
    )
