"""Claude Code's own interactive form on a conversation of ours: its command line, and what its first start needs."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from legion.domain.text import to_json
from legion.drivers.claude import transcript
from legion.drivers.claude.options import ClaudeOptions
from legion.drivers.profile import ToolLink
from legion.system import safe_files

_STATE = ".claude.json"
_LARGEST_STATE = 16 << 20

LEAVE = "\x03"
"""Ctrl-C interrupts a turn, then clears what is typed, then, twice, exits."""
READY = (r"^\s*[>❯]\s*$", r"\? for shortcuts")
ASKING = (r"Do you want to [^\n?]*\?", r"Do you trust the files", r"No, and tell Claude what to do differently")


def command_line(program: Path, options: ClaudeOptions, prompt: str) -> tuple[str, ...]:
    """It continues the conversation, or starts it under our id. `prompt` is its first message; empty: none."""
    known = transcript.has_messages(options.config_dir, options.conversation)
    allowed = (*options.allowed_tools, *(() if options.desk is None else (f"mcp__{options.desk.server}",)))
    if not known:
        transcript.put_aside(options.config_dir, options.conversation)
    return (
        str(program),
        *(("--resume", options.conversation) if known else ("--session-id", options.conversation)),
        *(("--model", options.model) if options.model else ()),
        *("--permission-mode", options.permission_mode.value),
        *(("--allowedTools", ",".join(allowed)) if allowed else ()),
        *(("--tools", ",".join(options.tools)) if options.tools is not None else ()),
        # No settings files: a repository's could name another endpoint or run commands.
        *("--setting-sources", "", "--strict-mcp-config"),
        *(("--mcp-config", _servers(options.desk)) if options.desk is not None else ()),
        *(("--append-system-prompt", options.rules) if options.rules else ()),
        *(("--", prompt) if prompt and not known else ()),
    )


def _servers(link: ToolLink) -> str:
    """Legion's tools. The runner fills in the address; the token is in a variable, which other users cannot read."""
    headers = {"Authorization": "Bearer ${LEGION_TOOLS_TOKEN}"}
    return to_json({"mcpServers": {link.server: {"type": "http", "url": "{tools_url}", "headers": headers}}})


def skip_first_questions(config_dir: Path, tree: Path) -> None:
    """Its first start asks for colours and for trust in the folder, which the sandbox has answered already."""
    found: dict[str, Any] = {}
    with contextlib.suppress(ValueError):
        read = json.loads(safe_files.read(config_dir, _STATE, most=_LARGEST_STATE) or b"{}")
        found = read if isinstance(read, dict) else {}
    projects = found.get("projects")
    projects = projects if isinstance(projects, dict) else {}
    mine = projects.get(str(tree))
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    facts = {
        "theme": "dark",
        **found,
        "hasCompletedOnboarding": True,
        "bypassPermissionsModeAccepted": True,
        "projects": {**projects, str(tree): {**(mine if isinstance(mine, dict) else {}), **trusted}},
    }
    safe_files.write(config_dir, _STATE, to_json(facts).encode())
