"""Bodies as real programs and providers send them, cut down to what matters."""

from __future__ import annotations

import json
from typing import Any

Json = dict[str, Any]
PICTURE = "iVBORw0KGgo="

READ_SCHEMA = {"type": "object", "properties": {"file_path": {"type": "string"}}, "required": ["file_path"]}
BASH_SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}

# As Claude Code asks in the middle of a job.
CLAUDE_CODE: Json = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 32000,
    "stream": True,
    "system": [
        {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.325.abc; cc_entrypoint=cli;"},
        {"type": "text", "text": "You are Claude Code.", "cache_control": {"type": "ephemeral"}},
        {
            "type": "text",
            "text": "# Environment\nPrimary working directory: /home/ada",
            "cache_control": {"type": "ephemeral"},
        },
    ],
    "tools": [
        {"name": "Read", "description": "Reads a file.", "input_schema": READ_SCHEMA},
        {"name": "Bash", "description": "Runs a command.", "input_schema": BASH_SCHEMA},
        {"type": "web_search_20250305", "name": "web_search"},
    ],
    "thinking": {"type": "adaptive"},
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    "output_config": {"effort": "high"},
    "metadata": {"user_id": "user_1_account__session_5f0c"},
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "<system-reminder>Today is Sunday.</system-reminder>"},
                {"type": "text", "text": "Read both files."},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Two files.", "signature": "EqQBCgIYAhIM+/=="},
                {"type": "text", "text": "I read them."},
                {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "/home/ada/a.png"}},
                {"type": "tool_use", "id": "toolu_2", "name": "Bash", "input": {"command": "cat b"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "content": [
                        {"type": "text", "text": "A picture:"},
                        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}},
                    ],
                },
                {"type": "tool_result", "tool_use_id": "toolu_2", "content": "no such file", "is_error": True},
                {"type": "text", "text": "Go on.", "cache_control": {"type": "ephemeral"}},
            ],
        },
        {"role": "system", "content": "The person says: hurry."},
    ],
}

# As Codex asks in the middle of a job.
CODEX: Json = {
    "model": "gpt-5-codex",
    "instructions": "You are Codex.",
    "input": [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Sandbox: off."}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "List the files."}]},
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "ls will do."}],
            "content": None,
            "encrypted_content": "gAAAAB==",
        },
        {"type": "function_call", "call_id": "call_1", "name": "shell", "arguments": '{"command":["ls"]}'},
        {"type": "custom_tool_call", "call_id": "call_2", "name": "apply_patch", "input": "*** Begin Patch"},
        {"type": "function_call_output", "call_id": "call_1", "output": "a\nb"},
        {"type": "custom_tool_call_output", "call_id": "call_2", "output": "Done"},
    ],
    "tools": [
        {"type": "function", "name": "shell", "description": "Runs.", "strict": False, "parameters": BASH_SCHEMA},
        {
            "type": "custom",
            "name": "apply_patch",
            "description": "Edits files.",
            "format": {"type": "grammar", "syntax": "lark", "definition": "start: begin_patch"},
        },
        {"type": "web_search"},
    ],
    "tool_choice": "auto",
    "parallel_tool_calls": False,
    "reasoning": {"effort": "medium", "summary": "auto"},
    "store": False,
    "stream": True,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "0199-thread",
}

# As opencode asks, through the SDK for compatible providers.
OPENCODE: Json = {
    "model": "qwen3",
    "max_tokens": 32000,
    "temperature": 0.55,
    "top_p": 1,
    "messages": [
        {"role": "system", "content": "You are opencode."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is on it?"},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}},
            ],
        },
        {
            "role": "assistant",
            "content": "I look.",
            "reasoning_content": "A look.",
            "tool_calls": [
                {"id": "call_a", "type": "function", "function": {"name": "read", "arguments": '{"file_path":"x"}'}},
                {"id": "call_b", "type": "function", "function": {"name": "bash", "arguments": '{"command":"ls"}'}},
            ],
        },
        {"role": "tool", "tool_call_id": "call_a", "content": "one"},
        {"role": "tool", "tool_call_id": "call_b", "content": [{"type": "text", "text": "two"}]},
    ],
    "tools": [
        {"type": "function", "function": {"name": "read", "description": "Reads.", "parameters": READ_SCHEMA}},
        {"type": "function", "function": {"name": "bash", "parameters": BASH_SCHEMA}},
    ],
    "tool_choice": "auto",
    "stream": True,
    "stream_options": {"include_usage": True},
}


def sse(*events: Json | str) -> bytes:
    lines = []
    for event in events:
        if isinstance(event, str):
            lines.append(f"data: {event}\n\n")
        else:
            name = f"event: {event['type']}\n" if "type" in event else ""
            lines.append(f"{name}data: {json.dumps(event)}\n\n")
    return "".join(lines).encode()


def _block(index: int, opening: Json, *deltas: Json) -> list[Json]:
    return [
        {"type": "content_block_start", "index": index, "content_block": opening},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


ANTHROPIC_STREAM = sse(
    {
        "type": "message_start",
        "message": {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {
                "input_tokens": 10,
                "cache_read_input_tokens": 500,
                "cache_creation_input_tokens": 30,
                "output_tokens": 1,
            },
        },
    },
    {"type": "ping"},
    *_block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "Let me "},
        {"type": "thinking_delta", "thinking": "see."},
        {"type": "signature_delta", "signature": "EqQB=="},
    ),
    *_block(
        1,
        {"type": "text", "text": ""},
        {"type": "text_delta", "text": "Grüße, "},
        {"type": "text_delta", "text": "Ada 🙂"},
    ),
    *_block(
        2,
        {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {}},
        {"type": "input_json_delta", "partial_json": ""},
        {"type": "input_json_delta", "partial_json": '{"file_'},
        {"type": "input_json_delta", "partial_json": 'path": "a"}'},
    ),
    *_block(
        3,
        {"type": "tool_use", "id": "toolu_2", "name": "Bash", "input": {}},
        {"type": "input_json_delta", "partial_json": '{"command": "ls"}'},
    ),
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 42}},
    {"type": "message_stop"},
)


def _chunk(delta: Json, finish: str | None = None) -> Json:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "qwen3", "choices": [choice]}


def _call(index: int, arguments: str, **more: Any) -> Json:
    name = {"name": more.pop("name")} if "name" in more else {}
    return {"tool_calls": [{"index": index, "function": {"arguments": arguments, **name}, **more}]}


CHAT_STREAM = sse(
    _chunk({"role": "assistant", "content": ""}),
    _chunk({"reasoning_content": "Let me "}),
    _chunk({"reasoning_content": "see."}),
    _chunk({"content": "Grüße, "}),
    _chunk({"content": "Ada 🙂"}),
    _chunk(_call(0, "", id="call_1", type="function", name="Read")),
    _chunk(_call(0, '{"file_')),
    _chunk(_call(0, 'path": "a"}')),
    _chunk(_call(1, '{"command": "ls"}', id="call_2", type="function", name="Bash")),
    _chunk({}, "tool_calls"),
    {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "qwen3",
        "choices": [],
        "usage": {
            "prompt_tokens": 540,
            "completion_tokens": 42,
            "total_tokens": 582,
            "prompt_tokens_details": {"cached_tokens": 500},
        },
    },
    "[DONE]",
)

_RESPONSE = {"id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-5-codex"}
_USAGE = {
    "input_tokens": 540,
    "input_tokens_details": {"cached_tokens": 500},
    "output_tokens": 42,
    "output_tokens_details": {"reasoning_tokens": 12},
    "total_tokens": 582,
}
_THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": []}
_READ = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "Read", "arguments": ""}
_BASH = {"type": "function_call", "id": "fc_2", "call_id": "call_2", "name": "Bash", "arguments": ""}
RESPONSES_STREAM = sse(
    {"type": "response.created", "response": {**_RESPONSE, "status": "in_progress", "output": []}},
    {"type": "response.in_progress", "response": {**_RESPONSE, "status": "in_progress", "output": []}},
    {"type": "response.output_item.added", "output_index": 0, "item": _THOUGHT},
    {"type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": 0, "part": {}},
    {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "Let me "},
    {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "see."},
    {"type": "response.output_item.done", "output_index": 0, "item": {**_THOUGHT, "encrypted_content": "gAAA=="}},
    {"type": "response.output_item.added", "output_index": 1, "item": {"type": "message", "content": []}},
    {"type": "response.content_part.added", "output_index": 1, "content_index": 0, "part": {"type": "output_text"}},
    {"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "Grüße, "},
    {"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "Ada 🙂"},
    {"type": "response.content_part.done", "output_index": 1, "content_index": 0, "part": {"type": "output_text"}},
    {
        "type": "response.output_item.done",
        "output_index": 1,
        "item": {"type": "message", "id": "msg_1", "content": [{"type": "output_text", "text": "Grüße, Ada 🙂"}]},
    },
    {"type": "response.output_item.added", "output_index": 2, "item": _READ},
    {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": '{"file_'},
    {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": 'path": "a"}'},
    {"type": "response.output_item.done", "output_index": 2, "item": {**_READ, "arguments": '{"file_path": "a"}'}},
    {"type": "response.output_item.added", "output_index": 3, "item": _BASH},
    {"type": "response.output_item.done", "output_index": 3, "item": {**_BASH, "arguments": '{"command": "ls"}'}},
    {"type": "response.completed", "response": {**_RESPONSE, "status": "completed", "output": [], "usage": _USAGE}},
)
