"""Reads and writes requests of OpenAI's Responses API. Each request must hold its complete conversation."""

from __future__ import annotations

from collections.abc import Iterator

from legion.gateway.dialects import signatures
from legion.gateway.dialects.common import (
    CHOICE_NAMES,
    CHOICES,
    EFFORTS,
    schema_of,
    short_name,
    takes_effort,
    wrap_text,
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
from legion.gateway.json_text import Json, UnreadableMessage

_ROLES = {
    "user": ChatRole.USER,
    "assistant": ChatRole.ASSISTANT,
    "system": ChatRole.SYSTEM,
    "developer": ChatRole.SYSTEM,
}
_TOOLS = ("function", "custom")


def read(facts: Json) -> ModelRequest:
    if facts.get("previous_response_id") or facts.get("conversation"):
        raise UnreadableMessage(
            "it names an earlier answer, and the gateway stores none; send the complete conversation instead"
        )
    given = facts["input"]
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    messages = list(_messages(items))
    first = next((at for at, one in enumerate(messages) if one.role is not ChatRole.SYSTEM), len(messages))
    leading = [part for one in messages[:first] for part in one.parts if isinstance(part, TextPart)]
    choice, chosen = _choice(facts.get("tool_choice"))
    instructions = facts.get("instructions")
    return ModelRequest(
        model=facts["model"],
        messages=tuple(messages[first:]),
        system=(*((TextPart(text=instructions),) if instructions else ()), *leading),
        tools=tuple(_tool(one) for one in facts.get("tools") or () if one["type"] in _TOOLS),
        choice=choice,
        chosen=chosen,
        parallel=facts.get("parallel_tool_calls") is not False,
        max_tokens=facts.get("max_output_tokens"),
        temperature=facts.get("temperature"),
        top_p=facts.get("top_p"),
        effort=EFFORTS.get((facts.get("reasoning") or {}).get("effort") or ""),
        format=_format((facts.get("text") or {}).get("format")),
        stream=facts.get("stream") is True,
        user=facts.get("safety_identifier") or facts.get("user") or "",
        conversation=facts.get("prompt_cache_key") or "",
    )


def _messages(items: list[Json]) -> Iterator[ChatMessage]:
    """Joins neighbouring items of one role into one message."""
    role, parts = ChatRole.USER, list[Part]()
    for item in items:
        side, more = _item(item)
        if parts and side is not role:
            yield ChatMessage(role=role, parts=tuple(parts))
            parts = []
        role = side
        parts += more
    if parts:
        yield ChatMessage(role=role, parts=tuple(parts))


def _item(item: Json) -> tuple[ChatRole, list[Part]]:
    match item.get("type", "message"):
        case "message":
            return _ROLES[item["role"]], list(_content(item["content"]))
        case "function_call":
            call = ToolCallPart(id=item["call_id"], name=item["name"], input=item.get("arguments") or "{}")
            return ChatRole.ASSISTANT, [call]
        case "custom_tool_call":
            return ChatRole.ASSISTANT, [
                ToolCallPart(id=item["call_id"], name=item["name"], input=wrap_text(item["input"]))
            ]
        case "function_call_output" | "custom_tool_call_output":
            return ChatRole.USER, [ToolResultPart(call=item["call_id"], content=_content(item["output"]))]
        case "reasoning":
            return ChatRole.ASSISTANT, [_thought(item)]
        case "item_reference":
            raise UnreadableMessage("it refers to an earlier item, and the gateway stores none; send the item itself")
        case _:
            return ChatRole.ASSISTANT, []


def _content(content: str | list[Json]) -> tuple[TextPart | ImagePart | DocumentPart, ...]:
    if isinstance(content, str):
        return (TextPart(text=content),) if content else ()
    parts = (_part(one) for one in content)
    return tuple(part for part in parts if part is not None)


def _part(facts: Json) -> TextPart | ImagePart | DocumentPart | None:
    match facts["type"]:
        case "input_text" | "output_text" | "text" | "refusal":
            text = facts.get("text") or facts.get("refusal")
            return TextPart(text=text) if text else None
        case "input_image" if facts.get("image_url"):
            return ImagePart(url=facts["image_url"])
        case "input_file" if facts.get("file_data") or facts.get("file_url"):
            return DocumentPart(url=facts.get("file_data") or facts["file_url"], name=facts.get("filename") or "")
        case _:
            return None


def _thought(item: Json) -> ThinkingPart:
    content = item.get("encrypted_content") or ""
    ours = signatures.unpacked(content)
    if ours is not None:
        return ThinkingPart(text=ours[0], signature=ours[1])
    text = "\n\n".join(one["text"] for one in item.get("summary") or ())
    return ThinkingPart(text=text, signature=signatures.of_responses(item.get("id") or "", content) if content else "")


def _tool(facts: Json) -> ToolDefinition:
    schema = None if facts["type"] == "custom" else facts.get("parameters") or {"type": "object", "properties": {}}
    described = facts.get("description") or ""
    grammar = (facts.get("format") or {}).get("definition")
    if grammar:
        described = f"{described}\n\nThe input has to follow this grammar:\n{grammar}"
    return ToolDefinition(name=facts["name"], schema=schema, description=described, strict=facts.get("strict"))


def _choice(wanted: str | Json | None) -> tuple[ToolChoice, str]:
    if isinstance(wanted, dict):
        return (ToolChoice.ONE, wanted["name"]) if wanted["type"] in _TOOLS else (ToolChoice.AUTO, "")
    return CHOICES[wanted or "auto"], ""


def _format(wanted: Json | None) -> OutputFormat | None:
    match (wanted or {}).get("type"):
        case "json_schema" if wanted:
            return OutputFormat(schema=wanted["schema"], name=wanted.get("name") or "answer")
        case "json_object":
            return OutputFormat(schema=None)
        case _:
            return None


def write(request: ModelRequest) -> Json:
    facts: Json = {
        "model": request.model,
        "input": [item for message in request.messages for item in _written(message)],
        "stream": request.stream,
        "store": False,
    }
    if request.system:
        facts["instructions"] = "\n\n".join(one.text for one in request.system)
    if request.tools:
        facts["tools"] = [_written_tool(tool) for tool in request.tools]
        named = CHOICE_NAMES.get(request.choice)
        facts["tool_choice"] = named or {"type": "function", "name": short_name(request.chosen)}
        facts["parallel_tool_calls"] = request.parallel
    if request.max_tokens is not None:
        facts["max_output_tokens"] = max(request.max_tokens, 16)
    if takes_effort(request.model):
        facts["include"] = ["reasoning.encrypted_content"]
        facts |= {} if request.effort is None else {"reasoning": {"effort": request.effort.value, "summary": "auto"}}
    else:
        sampled = {"temperature": request.temperature, "top_p": request.top_p}
        facts |= {name: value for name, value in sampled.items() if value is not None}
    if request.format is not None:
        facts["text"] = {"format": _written_format(request.format)}
    if request.conversation:
        facts["prompt_cache_key"] = request.conversation
    return facts


def _written_format(wanted: OutputFormat) -> Json:
    if wanted.schema is None:
        return {"type": "json_object"}
    return {"type": "json_schema", "name": wanted.name, "schema": wanted.schema, "strict": True}


def _written_tool(tool: ToolDefinition) -> Json:
    # Always written: the default is strict, which most schemas are not made for.
    facts: Json = {"type": "function", "name": short_name(tool.name), "strict": tool.strict is True}
    facts["parameters"] = schema_of(tool)
    return facts | ({"description": tool.description} if tool.description else {})


def _written(message: ChatMessage) -> Iterator[Json]:
    """Parts that are items of their own, and the others joined into messages between them."""
    joined: list[Json] = []
    for part in message.parts:
        item = _written_item(part)
        if item is None:
            joined += _written_part(part, message.role)
            continue
        if joined:
            yield _message(message.role, joined)
            joined = []
        yield item
    if joined:
        yield _message(message.role, joined)


def _message(role: ChatRole, content: list[Json]) -> Json:
    name = "developer" if role is ChatRole.SYSTEM else role.value
    return {"type": "message", "role": name, "content": content}


def _written_item(part: Part) -> Json | None:
    match part:
        case ToolCallPart():
            return {"type": "function_call", "call_id": part.id, "name": short_name(part.name), "arguments": part.input}
        case ToolResultPart():
            return {"type": "function_call_output", "call_id": part.call, "output": _output(part)}
        case ThinkingPart() if (known := signatures.to_responses(part.signature)) is not None:
            summary = [{"type": "summary_text", "text": part.text}] if part.text else []
            return {"type": "reasoning", "id": known[0], "summary": summary, "encrypted_content": known[1]}
        case _:
            return None


def _output(result: ToolResultPart) -> str | list[Json]:
    if all(isinstance(part, TextPart) for part in result.content):
        text = "\n".join(part.text for part in result.content if isinstance(part, TextPart))
        return f"Error: {text}" if result.failed else text
    failed = [{"type": "input_text", "text": "Error:"}] if result.failed else []
    return [*failed, *(one for part in result.content for one in _written_part(part, ChatRole.USER))]


def _written_part(part: Part, role: ChatRole) -> list[Json]:
    match part:
        case TextPart():
            return [{"type": "output_text" if role is ChatRole.ASSISTANT else "input_text", "text": part.text}]
        case ImagePart():
            return [{"type": "input_image", "image_url": part.url, "detail": "auto"}]
        case DocumentPart():
            if not part.url.startswith("data:"):
                return [{"type": "input_file", "file_url": part.url}]
            return [{"type": "input_file", "filename": part.name or "document.pdf", "file_data": part.url}]
        case _:
            return []
