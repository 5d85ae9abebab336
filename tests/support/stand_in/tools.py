"""Claude Code's own tools, as far as scripts use them, those of the SDK's servers, and the permission for each."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path

from tests.support.stand_in.line import Json, Line

_OWN_TOOLS = ("Bash", "Read", "Write", "Edit", "Glob", "Grep")
_USUAL = _OWN_TOOLS[:4]
"""Those that it has where none are chosen."""
_LONGEST_OUTPUT = 30_000


class Tools:
    """Claude Code's own tools, as far as scripts use them, and those of the SDK's servers."""

    def __init__(self, line: Line, options: dict[str, str], conversation: str) -> None:
        self._line = line
        self._conversation = conversation
        self._mode = options.get("permission-mode", "default")
        self._asks = "permission-prompt-tool" in options
        self._rules = [rule for rule in options.get("allowedTools", "").split(",") if rule]
        chosen = options["tools"].split(",") if "tools" in options else _USUAL
        served = [rule for rule in self._rules if rule.startswith("mcp__")]
        self.names = [*(name for name in chosen if name in _OWN_TOOLS), *served]
        self.denials: list[Json] = []
        self._servers: set[str] = set()

    def use(self, call: Json) -> tuple[str, bool]:
        """The result of a call, and whether it failed. Raises Interrupted."""
        name, input = call["name"], call["input"]
        if name not in self.names:
            return f"<tool_use_error>Error: No such tool available: {name}</tool_use_error>", True
        for hook in self._line.hooks:
            facts = {"hook_event_name": "PreToolUse", "tool_name": name, "tool_input": input}
            self._line.ask(subtype="hook_callback", callback_id=hook, input=facts, tool_use_id=call["id"])
        refusal = self._refusal(call)
        if refusal:
            self.denials.append({"tool_name": name, "tool_use_id": call["id"], "tool_input": input})
            self._line.send(type="system", subtype="permission_denied", tool_name=name, tool_use_id=call["id"])
            return refusal, True
        if name.startswith("mcp__"):
            return self._served(name, input)
        try:
            used: tuple[str, bool] = getattr(self, f"_{name.lower()}")(**input)
        except (OSError, ValueError, TypeError) as trouble:
            return f"<tool_use_error>{trouble}</tool_use_error>", True
        return used

    def _refusal(self, call: Json) -> str:
        name, input = call["name"], call["input"]
        if self._is_allowed(name, input):
            return ""
        if self._asks and self._mode != "dontAsk":
            asked = {"tool_name": name, "input": input, "tool_use_id": call["id"], "permission_suggestions": []}
            answer = self._line.ask(subtype="can_use_tool", **asked)
            verdict = answer.get("response") or {}
            return "" if verdict.get("behavior") == "allow" else verdict.get("message") or "It was denied."
        return f"Claude requested permissions to use {name}, but you haven't granted it yet."

    def _is_allowed(self, name: str, input: Json) -> bool:
        if self._mode == "bypassPermissions" or name in self._rules:
            return self._mode != "plan" or name.startswith("mcp__")
        path = Path(os.path.normpath(Path.cwd() / str(input.get("file_path") or input.get("path") or ".")))
        inside = path.is_relative_to(Path.cwd())
        if name in ("Read", "Glob", "Grep"):
            return inside or f"{name}(/{path})" in self._rules
        if name in ("Write", "Edit"):
            ruled = f"Edit(/{path})" in self._rules and self._mode != "plan"
            return ruled or (inside and self._mode == "acceptEdits")
        return any(_fits(rule, name, str(input.get("command", ""))) for rule in self._rules)

    def _served(self, name: str, input: Json) -> tuple[str, bool]:
        _, server, tool = name.split("__", 2)
        if server not in self._servers:
            self._servers.add(server)
            about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
            self._rpc(server, id=0, method="initialize", params=about)
            self._rpc(server, method="notifications/initialized")
        result = self._rpc(server, id=1, method="tools/call", params={"name": tool, "arguments": input})
        if "error" in result:
            return str(result["error"]["message"]), True
        found = result["result"]
        return "\n".join(one["text"] for one in found["content"]), bool(found.get("isError"))

    def _rpc(self, server: str, **message: object) -> Json:
        asked = {"subtype": "mcp_message", "server_name": server, "message": {"jsonrpc": "2.0", **message}}
        answer: Json = self._line.ask(**asked)["response"]["mcp_response"]
        return answer

    def _bash(self, command: str, timeout: int = 120_000, **_: object) -> tuple[str, bool]:
        argv = ["/bin/bash", "-c", command]
        env = {**os.environ, "CLAUDECODE": "1"}
        program = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=-1, stderr=subprocess.STDOUT, env=env, start_new_session=True
        )
        try:
            self._line.holds(tool=program)
            output = program.communicate(timeout=timeout / 1000)[0].decode(errors="replace").rstrip()
            self._line.check()
        except subprocess.TimeoutExpired:
            os.killpg(program.pid, signal.SIGKILL)
            return "Command timed out", True
        output = output[:_LONGEST_OUTPUT] or "(Bash completed with no output)"
        code = program.returncode
        return (output, False) if code == 0 else (f"Exit code {code}\n{output}", True)

    def _read(self, file_path: str, offset: int = 1, limit: int = 2000, **_: object) -> tuple[str, bool]:
        lines = Path(file_path).read_text().splitlines()[offset - 1 : offset - 1 + limit]
        return "\n".join(f"{number}\t{line}" for number, line in enumerate(lines, offset)), False

    def _write(self, file_path: str, content: str) -> tuple[str, bool]:
        Path(file_path).parent.mkdir(parents=True, exist_ok=True)
        Path(file_path).write_text(content)
        return f"File created successfully at: {file_path}", False

    def _edit(self, file_path: str, old_string: str, new_string: str, **_: object) -> tuple[str, bool]:
        before = Path(file_path).read_text()
        if before.count(old_string) != 1:
            return "<tool_use_error>String to replace not found in file.</tool_use_error>", True
        Path(file_path).write_text(before.replace(old_string, new_string))
        return f"The file {file_path} has been updated successfully.", False

    def _glob(self, pattern: str, **_: object) -> tuple[str, bool]:
        return "\n".join(str(path) for path in sorted(Path.cwd().glob(pattern))) or "No files found", False

    def _grep(self, pattern: str, **_: object) -> tuple[str, bool]:
        return self._bash(f"grep -rl -e {json.dumps(pattern)} . || true")


def _fits(rule: str, name: str, command: str) -> bool:
    found = re.fullmatch(r"(\w+)\((.*)\)", rule, re.DOTALL)
    if found is None or found[1] != name:
        return False
    start = found[2].removesuffix("*").removesuffix(":").rstrip()
    return command == found[2] or (found[2].endswith("*") and (command == start or command.startswith(f"{start} ")))
