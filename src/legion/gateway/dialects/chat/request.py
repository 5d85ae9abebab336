"""Reads and writes requests of OpenAI's Chat Completions API."""

from __future__ import annotations

from collections.abc import Iterator

from legion.gateway.dialects import signatures
from legion.gateway.dialects.common import (
    CHOICE_NAMES,
    CHOICES,
    EFFORTS,
    is_claude_elsewhere,
    schema_of,
    short_name,
    takes_effort,
)
from legion.gateway.dialects.messages import (
    ChatMessage,
    ChatRole,
    DocumentPart,
    ImagePart,
    ModelRequest,
    OutputFormat,
    Part,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolChoice,
    ToolDefinition,
    ToolResultPart,
)
from legion.gateway.json_text import Json

_MAX_STOPS = 4


def read(facts: Json) -> ModelRequest:
    messages = [_message(one) for one in facts["messages"]]
    first = next((at for at, one in enumerate(messages) if one.role is not ChatRole.SYSTEM), len(messages))
    choice, chosen = _choice(facts.get("tool_choice"))
    stops = facts.get("stop") or ()
    return ModelRequest(
        model=facts["model"],
        messages=tuple(messages[first:]),
        system=tuple(part for one in messages[:first] for part in one.parts if isinstance(part, TextPart)),
        tools=tuple(_tool(one) for one in facts.get("tools") or () if one["type"] == "function"),
        choice=choice,
        chosen=chosen,
        parallel=facts.get("parallel_tool_calls") is not False,
        max_tokens=facts.get("max_completion_tokens") or facts.get("max_tokens"),
        temperature=facts.get("temperature"),
        top_p=facts.get("top_p"),
        stops=(stops,) if isinstance(stops, str) else tuple(stops),
        effort=EFFORTS.get(facts.get("reasoning_effort") or ""),
        format=_format(facts.get("response_format")),
        stream=facts.get("stream") is True,
        count_stream=(facts.get("stream_options") or {}).get("include_usage") is True,
        user=facts.get("safety_identifier") or facts.get("user") or "",
        conversation=facts.get("prompt_cache_key") or "",
    )


def _message(facts: Json) -> ChatMessage:
    match facts["role"]:
        case "system" | "developer":
            return ChatMessage(role=ChatRole.SYSTEM, parts=_content(facts.get("content")))
        case "assistant":
            return ChatMessage(role=ChatRole.ASSISTANT, parts=tuple(_assistant_parts(facts)))
        case "tool" | "function":
            result = ToolResultPart(call=facts["tool_call_id"], content=_content(facts.get("content")))
            return ChatMessage(role=ChatRole.USER, parts=(result,))
        case _:
            return ChatMessage(role=ChatRole.USER, parts=_content(facts.get("content")))


def _content(content: str | list[Json] | None) -> tuple[TextPart | ImagePart | DocumentPart, ...]:
    if isinstance(content, str):
        return (TextPart(text=content),) if content else ()
    parts = (_part(one) for one in content or ())
    return tuple(part for part in parts if part is not None)


def _part(facts: Json) -> TextPart | ImagePart | DocumentPart | None:
    match facts["type"]:
        case "text" | "refusal":
            text = facts.get("text") or facts.get("refusal")
            return TextPart(text=text, cached=bool(facts.get("cache_control"))) if text else None
        case "image_url":
            url = facts["image_url"]
            return ImagePart(url=url if isinstance(url, str) else url["url"])
        case "file" if facts["file"].get("file_data"):
            return DocumentPart(url=facts["file"]["file_data"], name=facts["file"].get("filename") or "")
        case _:
            return None


def _assistant_parts(facts: Json) -> Iterator[Part]:
    thought = facts.get("reasoning_content") or facts.get("reasoning")
    if isinstance(thought, str) and thought:
        yield ThinkingPart(text=thought, signature=signatures.CHAT)
    yield from _content(facts.get("content") or facts.get("refusal"))
    for call in facts.get("tool_calls") or ():
        yield ToolCallPart(
            id=call["id"], name=call["function"]["name"], input=call["function"].get("arguments") or "{}"
        )


def _tool(facts: Json) -> ToolDefinition:
    inside = facts["function"]
    return ToolDefinition(
        name=inside["name"],
        schema=inside.get("parameters") or {"type": "object", "properties": {}},
        description=inside.get("description") or "",
        strict=inside.get("strict"),
    )


def _choice(wanted: str | Json | None) -> tuple[ToolChoice, str]:
    if isinstance(wanted, dict):
        return (ToolChoice.ONE, wanted["function"]["name"]) if wanted["type"] == "function" else (ToolChoice.AUTO, "")
    return CHOICES[wanted or "auto"], ""


def _format(wanted: Json | None) -> OutputFormat | None:
    match (wanted or {}).get("type"):
        case "json_schema" if wanted:
            inside = wanted["json_schema"]
            return OutputFormat(schema=inside.get("schema"), name=inside.get("name") or "answer")
        case "json_object":
            return OutputFormat(schema=None)
        case _:
            return None


def write(request: ModelRequest) -> Json:
    facts: Json = {"model": request.model, "messages": _written_messages(request), "stream": request.stream}
    if request.stream:
        facts["stream_options"] = {"include_usage": True}
    thinks = takes_effort(request.model)
    if request.max_tokens is not None:
        facts["max_completion_tokens" if thinks else "max_tokens"] = request.max_tokens
    if request.tools:
        facts["tools"] = [_written_tool(tool) for tool in request.tools]
        facts["tool_choice"] = CHOICE_NAMES.get(request.choice) or {
            "type": "function",
            "function": {"name": short_name(request.chosen)},
        }
        facts |= {} if request.parallel else {"parallel_tool_calls": False}
    if thinks and request.effort is not None:
        facts["reasoning_effort"] = request.effort.value
    # Models that think take neither.
    sampled = {} if thinks else {"temperature": request.temperature, "top_p": request.top_p}
    facts |= {name: value for name, value in sampled.items() if value is not None}
    if request.stops and not thinks:
        facts["stop"] = list(request.stops[:_MAX_STOPS])
    if request.format is not None:
        facts["response_format"] = _written_format(request.format)
    if request.conversation:
        facts["prompt_cache_key"] = request.conversation
    return facts


def _written_format(wanted: OutputFormat) -> Json:
    if wanted.schema is None:
        return {"type": "json_object"}
    inside = {"name": wanted.name, "schema": wanted.schema, "strict": True}
    return {"type": "json_schema", "json_schema": inside}


def _written_tool(tool: ToolDefinition) -> Json:
    inside: Json = {"name": short_name(tool.name), "parameters": schema_of(tool)}
    if tool.description:
        inside["description"] = tool.description
    if tool.strict is not None:
        inside["strict"] = tool.strict
    return {"type": "function", "function": inside}


def _written_messages(request: ModelRequest) -> list[Json]:
    marked = is_claude_elsewhere(request.model)
    written: list[Json] = []
    if request.system:
        written.append({"role": "system", "content": _texts(request.system, marked)})
    for message in request.messages:
        if message.role is ChatRole.ASSISTANT:
            written += _written_turn(message)
        else:
            written += _written_others(message, marked)
    return written


def _texts(texts: tuple[TextPart, ...], marked: bool) -> str | list[Json]:
    if marked and any(one.cached for one in texts):
        return [_text(one, marked) for one in texts]
    return "\n\n".join(one.text for one in texts)


def _text(one: TextPart, marked: bool) -> Json:
    return {"type": "text", "text": one.text} | (
        {"cache_control": {"type": "ephemeral"}} if marked and one.cached else {}
    )


def _written_turn(message: ChatMessage) -> list[Json]:
    calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
    text = "".join(part.text for part in message.parts if isinstance(part, TextPart))
    thought = "".join(
        part.text for part in message.parts if isinstance(part, ThinkingPart) and part.signature == signatures.CHAT
    )
    if not calls and not text:
        return []
    facts: Json = {"role": "assistant", "content": text or None}
    if thought:
        facts["reasoning_content"] = thought
    if calls:
        facts["tool_calls"] = [
            {"id": one.id, "type": "function", "function": {"name": short_name(one.name), "arguments": one.input}}
            for one in calls
        ]
    return [facts]


def _written_others(message: ChatMessage, marked: bool) -> list[Json]:
    """Results first, one message each; images and documents in them come after, with everything else."""
    results = [part for part in message.parts if isinstance(part, ToolResultPart)]
    written: list[Json] = [{"role": "tool", "tool_call_id": one.call, "content": _result_text(one)} for one in results]
    shown: list[Part] = []
    for one in results:
        things = [part for part in one.content if not isinstance(part, TextPart)]
        if things:
            shown += [TextPart(text=f"What the tool gave back for {one.call}:"), *things]
    shown += [part for part in message.parts if isinstance(part, TextPart | ImagePart | DocumentPart)]
    if not shown:
        return written
    texts = tuple(part for part in shown if isinstance(part, TextPart))
    if len(texts) == len(shown):
        return [*written, {"role": "user", "content": _texts(texts, marked)}]
    return [*written, {"role": "user", "content": [_written_part(part, marked) for part in shown]}]


def _result_text(one: ToolResultPart) -> str:
    text = "\n".join(part.text for part in one.content if isinstance(part, TextPart))
    if not text and one.content:
        text = "See the next message."
    return f"Error: {text}" if one.failed else text


def _written_part(part: Part, marked: bool) -> Json:
    match part:
        case ImagePart():
            return {"type": "image_url", "image_url": {"url": part.url}}
        case DocumentPart():
            return {"type": "file", "file": {"filename": part.name or "document.pdf", "file_data": part.url}}
        case TextPart():
            return _text(part, marked)
        case _:
            raise TypeError(f"{type(part).__name__} is no part of what a person says")
