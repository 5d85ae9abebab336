"""The driver of Claude Code, through its own SDK.

Only runners import `driver`, `session`, `journal`, `mcp_server` and `transport`, which import the SDK.
"""
