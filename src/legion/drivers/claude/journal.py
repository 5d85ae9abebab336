"""Writes Claude Code's messages as events of the run's journal and as lines of its log."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from claude_agent_sdk import (
    AssistantMessage,
    Message,
    RateLimitEvent,
    ResultMessage,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)

from legion.domain.watchdog.activity import gist, tally_of
from legion.drivers import Host

_LONGEST_TEXT = 8000
_LONGEST_RESULT = 100_000
_LONGEST_INPUT = 400
_LONGEST_HEAD = 200
_IGNORED = frozenset({"init", "status", "hook_started", "hook_response"})


class ClaudeJournal:
    """One method per kind of message."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def take(self, message: Message) -> None:
        match message:
            case AssistantMessage():
                for block in message.content:
                    self._assistant(block, message.parent_tool_use_id, message.message_id)
            case UserMessage(content=list() as blocks):
                for block in blocks:
                    if isinstance(block, ToolResultBlock):
                        self._returned(block)
            case RateLimitEvent():
                info = message.rate_limit_info
                facts = {"status": info.status, "resets_at": info.resets_at, "utilization": info.utilization}
                self._host.record("limit", **facts, window=info.rate_limit_type)
            case ResultMessage():
                self._result(message)
            case SystemMessage():
                self._system(message)

    def print(self, line: str) -> None:
        self._host.output.write(line.encode("utf-8", "replace") + b"\n")

    def _assistant(self, block: object, parent: str | None, answer: str | None) -> None:
        match block:
            case TextBlock(text=text) if text.strip():
                self._host.record("said", text=_cut(text, _LONGEST_TEXT), parent=parent)
                self.print(text)
            case ThinkingBlock(thinking=thinking):
                self._host.record("thought", length=len(thinking), parent=parent)
            case ToolUseBlock(id=call, name=tool, input=input):
                self._host.record("called", call=call, tool=tool, input=summary(input), parent=parent, answer=answer)
                self.print(f"> {tool}: {summary(input)}")

    def _returned(self, block: ToolResultBlock) -> None:
        text = _text_of(block.content)
        tests = tally_of(text)
        failed = bool(block.is_error)
        head = _cut(text, _LONGEST_HEAD)
        self._host.record(
            "returned",
            call=block.tool_use_id,
            failed=failed,
            length=len(text),
            digest=_digest(text),
            gist=_digest(gist(text)),
            tests=None if tests is None else [tests.failed, tests.passed],
            head=head,
        )
        first = head.strip().splitlines()[:1]
        if failed:
            self.print(f"  failed: {first[0] if first else '(no output)'}")

    def _system(self, message: SystemMessage) -> None:
        data = message.data
        match message.subtype:
            case "api_retry":
                status, delay = data.get("error_status"), data.get("retry_delay_ms")
                self._host.record("retry", status=status, error=data.get("error"), delay_ms=delay)
                why = f"{data.get('error')}, {status}" if status else "the connection broke"
                self.print(f"  the model did not answer ({why}); retrying")
            case "permission_denied":
                self._host.record("denied", tool=data.get("tool_name"), call=data.get("tool_use_id"))
                self.print(f"  denied: {data.get('tool_name')}")
            case "model_fallback":
                self._host.record("fallback", **_plain(data))
            case ignored if ignored in _IGNORED:
                return
            case other:
                self._host.record("noted", what=other)

    def _result(self, result: ResultMessage) -> None:
        self._host.record(
            "result",
            subtype=result.subtype,
            error=result.is_error,
            reason=result.terminal_reason,
            text=_cut(result.result or "", _LONGEST_RESULT),
            status=result.api_error_status,
            turns=result.num_turns,
            cost_usd=result.total_cost_usd,
            usage=_plain(result.usage or {}),
            models=result.model_usage,
            denials=[summary(denial) for denial in result.permission_denials or []],
        )


def summary(input: object) -> str:
    """A tool's input in one line: its command, its path, or as much of it as fits."""
    if isinstance(input, dict):
        for name in ("command", "file_path", "path", "pattern", "url", "description", "prompt"):
            if isinstance(input.get(name), str):
                return _cut(" ".join(input[name].split()), _LONGEST_INPUT)
    return _cut(json.dumps(input, ensure_ascii=False, default=str), _LONGEST_INPUT)


def digest_of(input: object) -> str:
    """Distinguishes inputs whose summaries are equal."""
    return _digest(json.dumps(input, sort_keys=True, default=str))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def _text_of(content: str | list[dict[str, Any]] | None) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", f"[{part.get('type')}]")) for part in content or [])


def _plain(facts: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if isinstance(value, int | float | str)}


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}..."
