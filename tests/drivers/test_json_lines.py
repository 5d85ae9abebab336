"""The readers of JSON lines, on lines as the programs print them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from legion.drivers.json_lines.driver import READERS
from legion.drivers.programs import catalog


class Notes:
    """Keeps what a reader finds."""

    def __init__(self) -> None:
        self.found: list[tuple[Any, ...]] = []

    def take_session(self, id: str) -> None:
        self.found.append(("session", id))

    def take_text(self, text: str) -> None:
        self.found.append(("text", text))

    def take_thinking(self, text: str) -> None:
        self.found.append(("thinking", text))

    def start_call(self, call: str, tool: str, input: object) -> None:
        self.found.append(("start", call, tool, input))

    def end_call(self, call: str, text: str, *, failed: bool) -> None:
        self.found.append(("end", call, text, failed))

    def take_error(self, message: str) -> None:
        self.found.append(("error", message))

    def end_turn(self, reason: str, usage: Mapping[str, Any], cost_usd: float | None) -> None:
        self.found.append(("over", reason, dict(usage), cost_usd))


def read(program: str, *lines: dict[str, Any]) -> list[tuple[Any, ...]]:
    notes = Notes()
    for line in lines:
        READERS[program](line, notes)
    return notes.found


def codex_item(moment: str, **item: object) -> dict[str, Any]:
    return {"type": f"item.{moment}", "item": {"id": "item_3", **item}}


def test_codex():
    command = {"type": "command_execution", "command": "make"}
    found = read(
        "codex",
        {"type": "thread.started", "thread_id": "t-1"},
        {"type": "turn.started"},
        codex_item("completed", type="error", message="Model metadata not found."),
        codex_item("completed", type="reasoning", text="Hm."),
        codex_item("completed", type="agent_message", text="I run it."),
        codex_item("started", **command, status="in_progress", exit_code=None),
        codex_item("completed", **command, status="failed", exit_code=2, aggregated_output="no rule"),
        {"type": "error", "message": "Reconnecting... 1/1"},
        {"type": "turn.failed", "error": {"message": "429"}},
        {"type": "turn.completed", "usage": {"input_tokens": 7}},
        {"type": "of a later release"},
    )
    assert found == [
        ("session", "t-1"),
        ("thinking", "Hm."),
        ("text", "I run it."),
        ("start", "item_3", "command_execution", {"command": "make"}),
        ("start", "item_3", "command_execution", {"command": "make"}),
        ("end", "item_3", "no rule", True),
        ("error", "Reconnecting... 1/1"),
        ("error", "429"),
        ("over", "end_turn", {"input_tokens": 7}, None),
    ]


def pi_message(stop: str, *content: dict[str, Any], **more: object) -> dict[str, Any]:
    usage = {"input": 5, "output": 2, "cost": {"total": 0.5}}
    message = {"role": "assistant", "content": list(content), "stopReason": stop, "usage": usage, **more}
    return {"type": "message_end", "message": message}


def test_pi():
    found = read(
        "pi",
        {"type": "session", "id": "s-1"},
        {"type": "message_end", "message": {"role": "user", "content": [{"type": "text", "text": "the prompt"}]}},
        pi_message("toolUse", {"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "I run it."}),
        {"type": "tool_execution_start", "toolCallId": "c", "toolName": "bash", "args": {"command": "make"}},
        {
            "type": "tool_execution_end",
            "toolCallId": "c",
            "result": {"content": [{"type": "text", "text": "no rule"}]},
            "isError": True,
        },
        pi_message("error", errorMessage="429"),
        pi_message("stop", {"type": "text", "text": "Done."}),
    )
    assert found == [
        ("session", "s-1"),
        ("thinking", "Hm."),
        ("text", "I run it."),
        ("start", "c", "bash", {"command": "make"}),
        ("end", "c", "no rule", True),
        ("error", "429"),
        ("text", "Done."),
        ("over", "end_turn", {"input": 5, "output": 2}, 0.5),
    ]


@pytest.mark.parametrize("reader", sorted(READERS))
def test_no_line_breaks_a_reader(reader: str):
    strange: list[dict[str, Any]] = [
        {},
        {"type": None},
        {"type": "item.completed", "item": []},
        {"type": "item.completed", "item": {"type": "command_execution"}},
        {"type": "message_end", "message": {"role": "assistant", "content": [None, {"type": "text"}]}},
        {"type": "tool_execution_end", "toolCallId": "c", "result": {"content": [1]}},
        {"type": "turn.completed", "usage": 3},
    ]
    read(reader, *strange)


def test_every_described_program_has_its_reader():
    wanted = {one.json.reader for one in catalog.programs().found.values() if one.json.reader}
    assert wanted <= set(READERS)
