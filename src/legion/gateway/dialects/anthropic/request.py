"""Reads and writes requests of Anthropic's Messages API."""

from __future__ import annotations

from legion.gateway.dialects import signatures
from legion.gateway.dialects.common import call_id, input_of, schema_of, thinks_adaptively
from legion.gateway.dialects.messages import (
    ChatMessage,
    ChatRole,
    DocumentPart,
    Effort,
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
from legion.gateway.json_text import Json, dumps

_BILLING = "x-anthropic-billing-header"
"""Prefix of a block that Claude Code puts before its instructions: only for Anthropic, different in every release."""
_CHOICES = {"auto": ToolChoice.AUTO, "any": ToolChoice.ANY, "none": ToolChoice.NONE, "tool": ToolChoice.ONE}
_CHOICE_NAMES = {choice: name for name, choice in _CHOICES.items()}
_EFFORTS = {"low": Effort.LOW, "medium": Effort.MEDIUM, "high": Effort.HIGH, "xhigh": Effort.HIGH, "max": Effort.HIGH}
_BUDGETS = {Effort.LOW: 2048, Effort.MEDIUM: 8192, Effort.HIGH: 24576}
_DEFAULT_MAX_TOKENS = 16384
"""For callers that set no limit: Anthropic requires one."""
_CACHED = {"cache_control": {"type": "ephemeral"}}
_ONLY_JSON = "Answer with one JSON object and nothing else."


def read(facts: Json) -> ModelRequest:
    choice = facts.get("tool_choice") or {}
    wanted = _CHOICES[choice.get("type", "auto")]
    return ModelRequest(
        model=facts["model"],
        messages=tuple([_message(one) for one in facts["messages"]]),
        system=_system(facts.get("system")),
        tools=tuple(_tool(one) for one in facts.get("tools") or () if "input_schema" in one),
        choice=wanted,
        chosen=choice.get("name", ""),
        parallel=not choice.get("disable_parallel_tool_use", False),
        max_tokens=facts.get("max_tokens"),
        temperature=facts.get("temperature"),
        top_p=facts.get("top_p"),
        stops=tuple(facts.get("stop_sequences") or ()),
        effort=_effort(facts),
        format=_format(facts),
        stream=facts.get("stream") is True,
        user=(facts.get("metadata") or {}).get("user_id") or "",
    )


def _system(content: str | list[Json] | None) -> tuple[TextPart, ...]:
    blocks = [{"text": content}] if isinstance(content, str) else content or []
    return tuple(_text(one) for one in blocks if one["text"] and not one["text"].startswith(_BILLING))


def _message(facts: Json) -> ChatMessage:
    content = facts["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    parts = [part for block in blocks if (part := _part(block)) is not None]
    return ChatMessage(role=ChatRole(facts["role"]), parts=tuple(parts))


def _part(block: Json) -> Part | None:
    """None for blocks that only Anthropic's own servers understand."""
    match block["type"]:
        case "text":
            return _text(block) if block["text"] else None
        case "image" | "document" | "search_result" | "tool_reference":
            return _thing(block)
        case "tool_use":
            return ToolCallPart(id=block["id"], name=block["name"], input=dumps(block["input"]).decode())
        case "tool_result":
            return ToolResultPart(
                call=block["tool_use_id"], content=_result(block.get("content")), failed=block.get("is_error") is True
            )
        case "thinking":
            return ThinkingPart(text=block["thinking"], signature=block.get("signature") or "")
        case "redacted_thinking":
            return ThinkingPart(signature=signatures.of_redacted(block["data"]))
        case _:
            return None


def _text(block: Json) -> TextPart:
    return TextPart(text=block["text"], cached=bool(block.get("cache_control")))


def _thing(block: Json) -> TextPart | ImagePart | DocumentPart | None:
    match block["type"]:
        case "text":
            return _text(block)
        case "tool_reference":
            return TextPart(text=f"The tool {block['tool_name']} can be used now.")
        case "search_result":
            found = "\n".join(one["text"] for one in block["content"])
            return TextPart(text=f"{block['title']} ({block['source']})\n{found}")
        case "image":
            return ImagePart(url=_url(block["source"]))
        case "document":
            return _document(block)
        case _:
            return None


def _document(block: Json) -> TextPart | DocumentPart:
    source = block["source"]
    if source["type"] == "text":
        return TextPart(text=source["data"])
    if source["type"] == "content":
        content = source["content"]
        return TextPart(text=content if isinstance(content, str) else "\n".join(one.get("text", "") for one in content))
    return DocumentPart(url=_url(source), name=block.get("title") or "")


def _url(source: Json) -> str:
    return source["url"] if source["type"] == "url" else f"data:{source['media_type']};base64,{source['data']}"


def _result(content: str | list[Json] | None) -> tuple[TextPart | ImagePart | DocumentPart, ...]:
    if isinstance(content, str):
        return (TextPart(text=content),)
    things = (_thing(block) for block in content or ())
    return tuple(thing for thing in things if thing is not None)


def _tool(facts: Json) -> ToolDefinition:
    return ToolDefinition(
        name=facts["name"],
        schema=facts["input_schema"],
        description=facts.get("description") or "",
        strict=facts.get("strict"),
    )


def _effort(facts: Json) -> Effort | None:
    thinking = facts.get("thinking") or {}
    if thinking.get("type", "disabled") == "disabled":
        return None
    named = (facts.get("output_config") or {}).get("effort")
    if named in _EFFORTS:
        return _EFFORTS[named]
    budget = thinking.get("budget_tokens")
    if budget is None:
        return Effort.MEDIUM
    return next((effort for effort, most in _BUDGETS.items() if budget <= most), Effort.HIGH)


def _format(facts: Json) -> OutputFormat | None:
    wanted = (facts.get("output_config") or {}).get("format") or facts.get("output_format")
    return OutputFormat(schema=wanted["schema"]) if wanted and wanted.get("type") == "json_schema" else None


def write(request: ModelRequest) -> Json:
    max_tokens = request.max_tokens or _DEFAULT_MAX_TOKENS
    facts: Json = {
        "model": request.model,
        "max_tokens": max_tokens,
        "messages": _written_messages(request.messages),
        "stream": request.stream,
    }
    if system := _written_system(request):
        facts["system"] = system
    if request.tools:
        facts["tools"] = [_written_tool(tool) for tool in request.tools]
        facts["tools"][-1] |= _CACHED
        choice = {"type": _CHOICE_NAMES[request.choice]}
        if request.choice is ToolChoice.ONE:
            choice["name"] = request.chosen
        quiet = {} if request.parallel or request.choice is ToolChoice.NONE else {"disable_parallel_tool_use": True}
        facts["tool_choice"] = choice | quiet
    thinking = _written_thinking(request, max_tokens)
    facts |= thinking
    if request.temperature is not None and not thinking:
        # Other dialects allow up to 2.
        facts["temperature"] = min(request.temperature, 1.0)
    elif request.top_p is not None and not thinking:
        facts["top_p"] = request.top_p
    if stops := [stop for stop in request.stops if stop.strip()]:
        facts["stop_sequences"] = stops
    if request.format is not None and request.format.schema is not None:
        wanted = {"type": "json_schema", "schema": request.format.schema}
        facts["output_config"] = {**facts.get("output_config", {}), "format": wanted}
    if request.user:
        facts["metadata"] = {"user_id": request.user}
    return facts


def _written_system(request: ModelRequest) -> list[Json]:
    blocks: list[Json] = [{"type": "text", "text": one.text} for one in request.system]
    if request.format is not None and request.format.schema is None:
        blocks.append({"type": "text", "text": _ONLY_JSON})
    if blocks:
        blocks[-1] |= _CACHED
    return blocks


def _written_tool(tool: ToolDefinition) -> Json:
    facts: Json = {"name": tool.name, "input_schema": {"type": "object", **schema_of(tool)}}
    return facts | ({"description": tool.description} if tool.description else {})


def _written_thinking(request: ModelRequest, max_tokens: int) -> Json:
    """Empty where a turn in progress came without its thinking: Anthropic refuses to continue it with thinking on."""
    if (
        request.effort is None
        or request.choice in (ToolChoice.ANY, ToolChoice.ONE)
        or _lacks_thinking(request.messages)
    ):
        return {}
    if thinks_adaptively(request.model):
        return {"thinking": {"type": "adaptive"}, "output_config": {"effort": request.effort.value}}
    budget = min(_BUDGETS[request.effort], max_tokens - 1024)
    return {"thinking": {"type": "enabled", "budget_tokens": budget}} if budget >= 1024 else {}


def _lacks_thinking(messages: tuple[ChatMessage, ...]) -> bool:
    for message in reversed(messages):
        if message.role is ChatRole.ASSISTANT:
            first = next((part for part in message.parts if not isinstance(part, ThinkingPart) or part.signature), None)
            return not (isinstance(first, ThinkingPart) and signatures.is_anthropic(first.signature))
        if any(not isinstance(part, ToolResultPart) for part in message.parts):
            return False
    return False


def _written_messages(messages: tuple[ChatMessage, ...]) -> list[Json]:
    """Joins neighbouring messages of one role, with results of tools first: Anthropic requires both."""
    written: list[Json] = []
    for message in messages:
        role = "assistant" if message.role is ChatRole.ASSISTANT else "user"
        blocks = [block for part in message.parts if (block := _written(part)) is not None]
        if not blocks:
            continue
        if written and written[-1]["role"] == role:
            written[-1]["content"] += blocks
        else:
            written.append({"role": role, "content": blocks})
    for one in written:
        one["content"].sort(key=lambda block: block["type"] != "tool_result")
    # The next request starts with all of this one, so cache it.
    for one in [one for one in written if one["role"] == "user"][-2:]:
        if one["content"][-1]["type"] in ("text", "tool_result", "image"):
            one["content"][-1] |= _CACHED
    return written


def _written(part: Part) -> Json | None:
    match part:
        case TextPart():
            return {"type": "text", "text": part.text} if part.text else None
        case ImagePart():
            return {"type": "image", "source": _source(part.url)}
        case DocumentPart():
            title = {"title": part.name} if part.name else {}
            return {"type": "document", "source": _source(part.url), **title}
        case ThinkingPart():
            return _written_thinking_part(part)
        case ToolCallPart():
            return {"type": "tool_use", "id": call_id(part.id), "name": part.name, "input": input_of(part)}
        case ToolResultPart():
            content = [block for one in part.content if (block := _written(one)) is not None]
            failed = {"is_error": True} if part.failed else {}
            return {"type": "tool_result", "tool_use_id": call_id(part.call), "content": content, **failed}


def _written_thinking_part(part: ThinkingPart) -> Json | None:
    if not signatures.is_anthropic(part.signature):
        return None
    data = signatures.to_redacted(part.signature)
    if data is not None:
        return {"type": "redacted_thinking", "data": data}
    return {"type": "thinking", "thinking": part.text, "signature": part.signature}


def _source(url: str) -> Json:
    if not url.startswith("data:"):
        return {"type": "url", "url": url}
    kind, _, data = url.removeprefix("data:").partition(",")
    return {"type": "base64", "media_type": kind.partition(";")[0], "data": data}
