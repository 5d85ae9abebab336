"""Legion's own tools for Claude Code: an MCP server inside the runner that forwards each call to the daemon."""

from __future__ import annotations

from claude_agent_sdk import McpSdkServerConfig
from mcp.server import Server
from mcp.types import CallToolRequestParams, CallToolResult, ListToolsResult, TextContent, Tool

from legion.drivers.profile import ToolLink, ToolText
from legion.drivers.turns.daemon_link import DaemonLink


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
