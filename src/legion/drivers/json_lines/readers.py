"""Reads the JSON lines of agent programs: one reader per program, each into the same few facts. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

Line = Mapping[str, Any]


class TurnSink(Protocol):
    """What a turn consists of."""

    def take_session(self, id: str) -> None:
        """The program's own id of the conversation."""
        ...

    def take_text(self, text: str) -> None: ...

    def take_thinking(self, text: str) -> None: ...

    def start_call(self, call: str, tool: str, input: object) -> None: ...

    def end_call(self, call: str, text: str, *, failed: bool) -> None: ...

    def take_error(self, message: str) -> None:
        """An error that may still be followed by a retry."""
        ...

    def end_turn(self, reason: str, usage: Mapping[str, Any], cost_usd: float | None) -> None: ...


def read_codex(line: Line, sink: TurnSink) -> None:
    """`codex exec --json`. Its usage counts the complete conversation."""
    match line:
        case {"type": "thread.started", "thread_id": str(id)}:
            sink.take_session(id)
        case {"type": "item.started" | "item.completed" as moment, "item": {"type": str(kind)} as item}:
            _read_codex_item(moment == "item.completed", kind, item, sink)
        case {"type": "turn.completed"}:
            usage = line.get("usage")
            sink.end_turn("end_turn", usage if isinstance(usage, dict) else {}, None)
        case {"type": "turn.failed", "error": {"message": str(message)}} | {"type": "error", "message": str(message)}:
            sink.take_error(message)


def _read_codex_item(done: bool, kind: str, item: Line, sink: TurnSink) -> None:
    id = str(item.get("id"))
    match kind:
        case "agent_message" if done:
            sink.take_text(str(item.get("text") or ""))
        case "reasoning" if done:
            sink.take_thinking(str(item.get("text") or ""))
        case "command_execution" | "file_change" | "mcp_tool_call" | "web_search":
            names = ("command", "changes", "arguments", "query")
            sink.start_call(id, kind, {name: item[name] for name in names if name in item})
            if done:
                text = str(item.get("aggregated_output") or "")
                sink.end_call(id, text, failed=item.get("status") == "failed" or item.get("exit_code") not in (None, 0))


def read_pi(line: Line, sink: TurnSink) -> None:
    """`pi --mode json`."""
    match line:
        case {"type": "session", "id": str(id)}:
            sink.take_session(id)
        case {"type": "message_end", "message": {"role": "assistant", "content": list(blocks)} as message}:
            for block in blocks:
                _read_pi_block(block, sink)
            error = message.get("errorMessage")
            if message.get("stopReason") == "error":
                sink.take_error(str(error or "the model did not answer"))
            elif message.get("stopReason") == "stop":
                usage = message.get("usage")
                facts = usage if isinstance(usage, dict) else {}
                sink.end_turn("end_turn", {name: n for name, n in facts.items() if isinstance(n, int)}, _pi_cost(facts))
        case {"type": "tool_execution_start", "toolCallId": str(call), "toolName": str(tool)}:
            sink.start_call(call, tool, line.get("args"))
        case {"type": "tool_execution_end", "toolCallId": str(call), "result": {"content": list(parts)}}:
            texts = [str(part.get("text", "")) for part in parts if isinstance(part, dict)]
            sink.end_call(call, "\n".join(texts), failed=line.get("isError") is True)


def _read_pi_block(block: object, sink: TurnSink) -> None:
    match block:
        case {"type": "text", "text": str(text)}:
            sink.take_text(text)
        case {"type": "thinking", "thinking": str(text)}:
            sink.take_thinking(text)


def _pi_cost(usage: Line) -> float | None:
    match usage:
        case {"cost": {"total": int() | float() as total}} if total > 0:
            return float(total)
    return None


READERS: Mapping[str, Callable[[Line, TurnSink], None]] = {"codex": read_codex, "pi": read_pi}
