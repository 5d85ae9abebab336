"""Hand-made requests in each dialect, named by what is special in them."""

from __future__ import annotations

from typing import Any

from legion.gateway.dialects import signatures
from legion.gateway.dialects.registry import Dialect

Json = dict[str, Any]
PNG = "iVBORw0KGgo="
PDF = "JVBERi0xLjQ="
SCHEMA: Json = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
LONG = "mcp__a_server_with_quite_a_long_name__and_a_tool_with_an_even_longer_one_at_its_end"


def _anthropic(**more: Any) -> Json:
    return {"model": "claude-sonnet-4-5", "max_tokens": 1000, "messages": [_said("user", "hi")], **more}


def _said(role: str, content: object) -> Json:
    return {"role": role, "content": content}


def _tool(name: str = "Read", **more: Any) -> Json:
    return {"name": name, "description": "Reads.", "input_schema": SCHEMA, **more}


def _use(id: str = "toolu_1", name: str = "Read", **input: Any) -> Json:
    return {"type": "tool_use", "id": id, "name": name, "input": input or {"path": "a"}}


def _result(id: str = "toolu_1", content: object = "text of a", **more: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": id, "content": content, **more}


def _text(words: str = "hi", **more: Any) -> Json:
    return {"type": "text", "text": words, **more}


def _turns(*contents: object) -> list[Json]:
    return [_said("assistant" if number % 2 else "user", content) for number, content in enumerate(contents)]


_CACHED = {"cache_control": {"type": "ephemeral"}}
_B64 = {"type": "base64", "media_type": "image/png", "data": PNG}
_PICTURE = {"type": "image", "source": _B64}
_DOCUMENT = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}}
_THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "EqQBCgIYAhIM+/=="}

ANTHROPIC: dict[str, Json] = {
    "plain": _anthropic(),
    "blocks": _anthropic(messages=[_said("user", [_text("one"), _text("two")])]),
    "system text": _anthropic(system="Be good."),
    "system blocks": _anthropic(system=[_text("Be good."), _text("Be quick.", **_CACHED)]),
    "several turns": _anthropic(messages=_turns("one", "two", [_text("three")], [_text("four")], "five")),
    "two of a side": _anthropic(messages=[_said("user", "one"), _said("user", "two"), _said("assistant", "three")]),
    "letters": _anthropic(messages=[_said("user", 'Grüße 🙂 \u2028 "quoted" \\ \n\t')]),
    "picture": _anthropic(messages=[_said("user", [_PICTURE, _text("what is it?")])]),
    "picture elsewhere": _anthropic(
        messages=[_said("user", [{"type": "image", "source": {"type": "url", "url": "https://example.test/a.png"}}])]
    ),
    "document": _anthropic(messages=[_said("user", [_DOCUMENT])]),
    "tools": _anthropic(tools=[_tool(), _tool("Write")]),
    "tools cached": _anthropic(tools=[_tool(), _tool("Write", **_CACHED)]),
    "tool without words": _anthropic(tools=[{"name": "Read", "input_schema": SCHEMA}]),
    "tool with a long name": _anthropic(tools=[_tool(LONG)], tool_choice={"type": "tool", "name": LONG}),
    "tool of its own servers": _anthropic(tools=[_tool(), {"type": "web_search_20250305", "name": "web_search"}]),
    "choice auto": _anthropic(tools=[_tool()], tool_choice={"type": "auto"}),
    "choice any": _anthropic(tools=[_tool()], tool_choice={"type": "any"}),
    "choice none": _anthropic(tools=[_tool()], tool_choice={"type": "none"}),
    "choice one": _anthropic(tools=[_tool()], tool_choice={"type": "tool", "name": "Read"}),
    "one at a time": _anthropic(tools=[_tool()], tool_choice={"type": "auto", "disable_parallel_tool_use": True}),
    "call and result": _anthropic(tools=[_tool()], messages=_turns("go", [_use()], [_result()])),
    "words before a call": _anthropic(tools=[_tool()], messages=_turns("go", [_text("so"), _use()], [_result()])),
    "two calls": _anthropic(
        tools=[_tool()], messages=_turns("go", [_use(), _use("toolu_2", path="b")], [_result("toolu_2"), _result()])
    ),
    "result in blocks": _anthropic(
        tools=[_tool()], messages=_turns("go", [_use()], [_result(content=[_text("one"), _text("two")])])
    ),
    "result with a picture": _anthropic(
        tools=[_tool()], messages=_turns("go", [_use()], [_result(content=[_text("see"), _PICTURE])])
    ),
    "result that failed": _anthropic(
        tools=[_tool()], messages=_turns("go", [_use()], [_result(content="no such file", is_error=True)])
    ),
    "result of nothing": _anthropic(
        tools=[_tool()], messages=_turns("go", [_use()], [{"type": "tool_result", "tool_use_id": "toolu_1"}])
    ),
    "result and words": _anthropic(tools=[_tool()], messages=_turns("go", [_use()], [_result(), _text("and now?")])),
    "thought": _anthropic(tools=[_tool()], messages=_turns("go", [_THOUGHT, _use()], [_result()])),
    "thought that is hidden": _anthropic(
        messages=_turns("go", [{"type": "redacted_thinking", "data": "EmwKAhgB"}, _text("so")], "on")
    ),
    "thinking asked for": _anthropic(thinking={"type": "enabled", "budget_tokens": 800}),
    "effort": _anthropic(thinking={"type": "adaptive"}, output_config={"effort": "low"}),
    "settings": _anthropic(temperature=0.5, top_p=0.9, stop_sequences=["END", "STOP"], stream=True),
    "user": _anthropic(metadata={"user_id": "user_1"}),
    "schema": _anthropic(output_config={"format": {"type": "json_schema", "schema": SCHEMA}}),
}


def _chat(**more: Any) -> Json:
    return {"model": "gpt-4.1", "messages": [_said("user", "hi")], **more}


def _function(name: str = "Read", **more: Any) -> Json:
    return {"type": "function", "function": {"name": name, "description": "Reads.", "parameters": SCHEMA, **more}}


def _calls(*ids: str) -> Json:
    calls = [{"id": id, "type": "function", "function": {"name": "Read", "arguments": '{"path":"a"}'}} for id in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def _told(id: str = "call_1", content: object = "text of a") -> Json:
    return {"role": "tool", "tool_call_id": id, "content": content}


_ASKS = _said("user", "go")
_URL = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}

CHAT: dict[str, Json] = {
    "plain": _chat(),
    "parts": _chat(messages=[_said("user", [_text("one"), _text("two")])]),
    "system": _chat(messages=[_said("system", "Be good."), _said("user", "hi")]),
    "developer": _chat(messages=[_said("developer", "Be good."), _said("user", "hi")]),
    "system twice": _chat(messages=[_said("system", "Be good."), _said("system", "Be quick."), _said("user", "hi")]),
    "several turns": _chat(messages=_turns("one", "two", "three", "four", "five")),
    "letters": _chat(messages=[_said("user", 'Grüße 🙂 \u2028 "quoted" \\ \n\t')]),
    "picture": _chat(messages=[_said("user", [_text("what is it?"), _URL])]),
    "picture elsewhere": _chat(
        messages=[_said("user", [{"type": "image_url", "image_url": {"url": "https://example.test/a.png"}}])]
    ),
    "tools": _chat(tools=[_function(), _function("Write")]),
    "tool that is strict": _chat(tools=[_function(strict=True)]),
    "tool with a long name": _chat(tools=[_function(LONG)]),
    "choice auto": _chat(tools=[_function()], tool_choice="auto"),
    "choice required": _chat(tools=[_function()], tool_choice="required"),
    "choice none": _chat(tools=[_function()], tool_choice="none"),
    "choice one": _chat(tools=[_function()], tool_choice={"type": "function", "function": {"name": "Read"}}),
    "one at a time": _chat(tools=[_function()], parallel_tool_calls=False),
    "call and result": _chat(tools=[_function()], messages=[_ASKS, _calls("call_1"), _told()]),
    "words before a call": _chat(tools=[_function()], messages=[_ASKS, {**_calls("call_1"), "content": "so"}, _told()]),
    "two calls": _chat(
        tools=[_function()], messages=[_ASKS, _calls("call_1", "call_2"), _told("call_2"), _told("call_1", "b")]
    ),
    "result in parts": _chat(tools=[_function()], messages=[_ASKS, _calls("call_1"), _told(content=[_text("one")])]),
    "result and words": _chat(
        tools=[_function()], messages=[_ASKS, _calls("call_1"), _told(), _said("user", "and now?")]
    ),
    "thought": _chat(messages=[_ASKS, {**_said("assistant", "so"), "reasoning_content": "Hm."}, _said("user", "on")]),
    "effort": _chat(model="gpt-5", reasoning_effort="low"),
    "settings": _chat(temperature=0.5, top_p=0.9, stop=["END", "STOP"], stream=True),
    "one stop": _chat(stop="END"),
    "stream with usage": _chat(stream=True, stream_options={"include_usage": True}),
    "user": _chat(user="user_1"),
    "any json": _chat(response_format={"type": "json_object"}),
    "schema": _chat(response_format={"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}),
    "longest": _chat(max_tokens=77),
    "longest anew": _chat(max_completion_tokens=77),
}


def _responses(**more: Any) -> Json:
    return {"model": "gpt-5", "input": "hi", **more}


def _item(role: str, *parts: Json) -> Json:
    return {"type": "message", "role": role, "content": list(parts)}


def _in(words: str = "hi") -> Json:
    return {"type": "input_text", "text": words}


def _out(words: str) -> Json:
    return {"type": "output_text", "text": words}


def _flat(name: str = "Read", **more: Any) -> Json:
    return {"type": "function", "name": name, "description": "Reads.", "parameters": SCHEMA, **more}


def _call(id: str = "call_1") -> Json:
    return {"type": "function_call", "call_id": id, "name": "Read", "arguments": '{"path":"a"}'}


def _output(id: str = "call_1", output: object = "text of a") -> Json:
    return {"type": "function_call_output", "call_id": id, "output": output}


_GO = _item("user", _in("go"))
_REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"}
_PATCH = {"type": "custom", "name": "apply_patch", "description": "Patches.", "format": {"type": "text"}}

RESPONSES: dict[str, Json] = {
    "plain": _responses(),
    "items": _responses(input=[_item("user", _in("one"), _in("two"))]),
    "instructions": _responses(instructions="Be good."),
    "developer": _responses(input=[_item("developer", _in("Be good.")), _item("user", _in())]),
    "several turns": _responses(
        input=[_item("user", _in("one")), _item("assistant", _out("two")), _item("user", _in())]
    ),
    "letters": _responses(input='Grüße 🙂 \u2028 "quoted" \\ \n\t'),
    "picture": _responses(
        input=[_item("user", {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"}, _in())]
    ),
    "picture elsewhere": _responses(
        input=[_item("user", {"type": "input_image", "image_url": "https://example.test/a.png"})]
    ),
    "tools": _responses(tools=[_flat(), _flat("Write")]),
    "tool that is strict": _responses(tools=[_flat(strict=True)]),
    "tool with a long name": _responses(tools=[_flat(LONG)]),
    "tool of free text": _responses(tools=[_PATCH]),
    "tool of its own servers": _responses(tools=[_flat(), {"type": "web_search"}]),
    "choice auto": _responses(tools=[_flat()], tool_choice="auto"),
    "choice required": _responses(tools=[_flat()], tool_choice="required"),
    "choice none": _responses(tools=[_flat()], tool_choice="none"),
    "choice one": _responses(tools=[_flat()], tool_choice={"type": "function", "name": "Read"}),
    "one at a time": _responses(tools=[_flat()], parallel_tool_calls=False),
    "call and result": _responses(tools=[_flat()], input=[_GO, _call(), _output()]),
    "two calls": _responses(tools=[_flat()], input=[_GO, _call(), _call("call_2"), _output("call_2"), _output()]),
    "result in parts": _responses(
        tools=[_flat()],
        input=[
            _GO,
            _call(),
            _output(output=[_in("see"), {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"}]),
        ],
    ),
    "free text and its result": _responses(
        tools=[_PATCH],
        input=[
            _GO,
            {"type": "custom_tool_call", "call_id": "call_1", "name": "apply_patch", "input": "*** Begin"},
            {"type": "custom_tool_call_output", "call_id": "call_1", "output": "Done"},
        ],
    ),
    "thought": _responses(tools=[_flat()], input=[_GO, _REASONING, _call(), _output()]),
    "effort": _responses(reasoning={"effort": "low", "summary": "auto"}, include=["reasoning.encrypted_content"]),
    "settings": _responses(model="gpt-4.1", temperature=0.5, top_p=0.9, stream=True, store=False),
    "user": _responses(user="user_1", prompt_cache_key="conversation-1"),
    "any json": _responses(text={"format": {"type": "json_object"}}),
    "schema": _responses(text={"format": {"type": "json_schema", "name": "answer", "schema": SCHEMA}}),
    "longest": _responses(max_output_tokens=77),
}


def _gemini(*contents: Json, **more: Any) -> Json:
    """As the gateway reads it: model and stream are taken from the path."""
    asked = [_turn("user", _words())]
    return {"model": "gemini-2.5-pro", "stream": False, "contents": list(contents) or asked, **more}


def _turn(role: str, *parts: Json) -> Json:
    return {"role": role, "parts": list(parts)}


def _words(text: str = "hi", **more: Any) -> Json:
    return {"text": text, **more}


def _declared(name: str = "Read", **more: Any) -> Json:
    return {"functionDeclarations": [{"name": name, "description": "Reads.", "parametersJsonSchema": SCHEMA, **more}]}


def _asked(name: str = "Read", **more: Any) -> Json:
    return {"functionCall": {"name": name, "args": {"path": "a"}, **more}}


def _given(name: str = "Read", response: object = None, **more: Any) -> Json:
    return {"functionResponse": {"name": name, "response": response or {"output": "text of a"}, **more}}


def _mode(mode: str, *names: str) -> Json:
    return {"functionCallingConfig": {"mode": mode, **({"allowedFunctionNames": list(names)} if names else {})}}


_START = _turn("user", _words("go"))
_CAPITALS = {"type": "OBJECT", "properties": {"paths": {"type": "ARRAY", "items": {"type": "STRING"}}}}
_KEPT_THOUGHT = signatures.packed("Hm.", "EqQBCgIYAhIM+/==")

GEMINI: dict[str, Json] = {
    "plain": _gemini(),
    "system": _gemini(systemInstruction=_turn("user", _words("Be good."), _words("Be quick."))),
    "several turns": _gemini(_turn("user", _words("one")), _turn("model", _words("two")), _turn("user", _words())),
    "nothing in a turn": _gemini(_turn("user", _words("one")), _turn("model", _words("")), _turn("user", _words())),
    "letters": _gemini(_turn("user", _words('Grüße 🙂 \u2028 "quoted" \\ \n\t'))),
    "picture": _gemini(_turn("user", {"inlineData": {"mimeType": "image/png", "data": PNG}}, _words())),
    "document": _gemini(_turn("user", {"inlineData": {"mimeType": "application/pdf", "data": PDF}})),
    "picture elsewhere": _gemini(
        _turn("user", {"fileData": {"mimeType": "image/png", "fileUri": "https://example.test/a.png"}})
    ),
    "tools": _gemini(tools=[_declared(), _declared("Write")]),
    "tool in capitals": _gemini(tools=[_declared(parametersJsonSchema=None, parameters=_CAPITALS)]),
    "tool without input": _gemini(tools=[_declared(parametersJsonSchema=None)]),
    "tool of its own servers": _gemini(tools=[_declared(), {"googleSearch": {}}]),
    "choice auto": _gemini(tools=[_declared()], toolConfig=_mode("AUTO")),
    "choice any": _gemini(tools=[_declared()], toolConfig=_mode("ANY")),
    "choice none": _gemini(tools=[_declared()], toolConfig=_mode("NONE")),
    "choice one": _gemini(tools=[_declared()], toolConfig=_mode("ANY", "Read")),
    "call and result": _gemini(
        _START, _turn("model", _asked(id="call_a")), _turn("user", _given(id="call_a")), tools=[_declared()]
    ),
    "calls without ids": _gemini(
        _START,
        _turn("model", _words("so"), _asked(), _asked("Bash"), _asked()),
        _turn("user", _given(), _given("Bash"), _given(response={"output": "second"})),
        tools=[_declared(), _declared("Bash")],
    ),
    "result that failed": _gemini(
        _START, _turn("model", _asked()), _turn("user", _given(response={"error": "no such file"})), tools=[_declared()]
    ),
    "result in fields": _gemini(
        _START, _turn("model", _asked()), _turn("user", _given(response={"lines": [1, 2]})), tools=[_declared()]
    ),
    "result with a picture": _gemini(
        _START,
        _turn("model", _asked()),
        _turn("user", _given(parts=[{"inlineData": {"mimeType": "image/png", "data": PNG}}])),
        tools=[_declared()],
    ),
    "thought": _gemini(
        _START,
        _turn("model", _words("Hm.", thought=True), {**_asked(), "thoughtSignature": _KEPT_THOUGHT}),
        _turn("user", _given()),
        tools=[_declared()],
    ),
    "thought of its own": _gemini(
        _START, _turn("model", {**_asked(), "thoughtSignature": "AbC="}), _turn("user", _given()), tools=[_declared()]
    ),
    "effort": _gemini(generationConfig={"thinkingConfig": {"thinkingLevel": "LOW", "includeThoughts": True}}),
    "effort as a budget": _gemini(generationConfig={"thinkingConfig": {"thinkingBudget": 8192}}),
    "effort of its own choice": _gemini(generationConfig={"thinkingConfig": {"thinkingBudget": -1}}),
    "no effort": _gemini(generationConfig={"thinkingConfig": {"thinkingBudget": 0}}),
    "settings": _gemini(
        generationConfig={"temperature": 0.5, "topP": 0.9, "maxOutputTokens": 77, "stopSequences": ["END"]}, stream=True
    ),
    "any json": _gemini(generationConfig={"responseMimeType": "application/json"}),
    "schema": _gemini(generationConfig={"responseMimeType": "application/json", "responseJsonSchema": SCHEMA}),
    "schema in capitals": _gemini(
        generationConfig={"responseMimeType": "application/json", "responseSchema": _CAPITALS}
    ),
}

REQUESTS = {Dialect.ANTHROPIC: ANTHROPIC, Dialect.CHAT: CHAT, Dialect.RESPONSES: RESPONSES, Dialect.GEMINI: GEMINI}
