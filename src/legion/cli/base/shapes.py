"""Answers that the command line gives without the daemon, with the same rules as the wire's."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(kw_only=True)
class Version:
    schema: str = "legion.version/1"
    version: str


@dataclass(kw_only=True)
class DaemonShape:
    """`legion up` and `legion serve`."""

    schema: str = "legion.daemon/1"
    pid: int
    url: str
    version: str
    data_dir: str
    token_file: str
    """The file with the token that every request needs; only you can read it."""
    started: bool
    """False where it was running already."""


@dataclass(kw_only=True)
class McpShape:
    """`legion mcp`."""

    schema: str = "legion.mcp/1"
    url: str
    token_file: str
    """Its content belongs into the header `Authorization: Bearer ...`."""


@dataclass(kw_only=True)
class Completion:
    schema: str = "legion.completion/1"
    shell: str
    script: str
