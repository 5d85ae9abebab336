"""Shapes of calls to Legion's tools, sent by an agent's runner or by any program over MCP."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from legion.wire.lazy import dataclass


@dataclass(kw_only=True)
class ToolCall:
    arguments: dict[str, Any] = field(default_factory=dict)
    """As the model gave them."""
    request: str = ""
    """The name of this call: the same again gets the first answer."""


@dataclass(kw_only=True)
class ToolAnswer:
    schema: str = "legion.tool/1"
    text: str = ""
    """What the model reads."""
    data: dict[str, Any] = field(default_factory=dict)
    """The same, for programs."""
    again: bool = False
    """Nothing to tell yet: send the same request again."""


@dataclass(kw_only=True)
class ToolLine:
    name: str
    description: str
    parameters: dict[str, Any]
    """As JSON Schema."""


@dataclass(kw_only=True)
class Tools:
    schema: str = "legion.tools/1"
    tools: list[ToolLine]
    """Those that the caller sees."""
