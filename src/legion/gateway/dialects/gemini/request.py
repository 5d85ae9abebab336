"""Reads requests of the Gemini API. Its path names the model and says whether the answer is streamed."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from legion.gateway.dialects import signatures
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
from legion.gateway.json_text import Json

_LEVELS = {"MINIMAL": Effort.LOW, "LOW": Effort.LOW, "MEDIUM": Effort.MEDIUM, "HIGH": Effort.HIGH}
_BUDGETS = {Effort.LOW: 4096, Effort.MEDIUM: 16384}
_DYNAMIC = -1
"""The budget of a model that chooses the length of its thinking itself."""
_CHOICES = {
    "AUTO": ToolChoice.AUTO,
    "VALIDATED": ToolChoice.AUTO,
    "MODE_UNSPECIFIED": ToolChoice.AUTO,
    "ANY": ToolChoice.ANY,
    "NONE": ToolChoice.NONE,
}
_JSON = "application/json"
_NO_INPUT: Json = {"type": "object", "properties": {}}


def read(facts: Json) -> ModelRequest:
    settings = facts.get("generationConfig") or {}
    choice, chosen = _choice((facts.get("toolConfig") or {}).get("functionCallingConfig") or {})
    system = facts.get("systemInstruction") or {}
    calls = _CallIds()
    messages = (ChatMessage(role=_role(one), parts=tuple(_parts(one, calls))) for one in facts["contents"])
    return ModelRequest(
        model=facts["model"],
        messages=tuple(one for one in messages if one.parts),
        system=tuple(TextPart(text=one["text"]) for one in system.get("parts") or () if one.get("text")),
        tools=tuple(
            _tool(one) for group in facts.get("tools") or () for one in group.get("functionDeclarations") or ()
        ),
        choice=choice,
        chosen=chosen,
        max_tokens=settings.get("maxOutputTokens"),
        temperature=settings.get("temperature"),
        top_p=settings.get("topP"),
        stops=tuple(settings.get("stopSequences") or ()),
        effort=_effort(settings.get("thinkingConfig") or {}),
        format=_format(settings),
        stream=facts.get("stream") is True,
    )


class _CallIds:
    """Gives calls without an id one of ours, and their results the same: both come in one order."""

    def __init__(self) -> None:
        self._count = 0
        self._open: dict[str, list[str]] = {}

    def called(self, facts: Json) -> str:
        self._count += 1
        id: str = facts.get("id") or f"call_{self._count}"
        self._open.setdefault(facts["name"], []).append(id)
        return id

    def returned(self, facts: Json) -> str:
        waiting = self._open.get(facts["name"]) or []
        id: str = facts.get("id") or (waiting[0] if waiting else f"call_of_{facts['name']}")
        if id in waiting:
            waiting.remove(id)
        return id


def _role(facts: Json) -> ChatRole:
    return ChatRole.ASSISTANT if facts.get("role") == "model" else ChatRole.USER


def _parts(message: Json, calls: _CallIds) -> Iterator[Part]:
    for facts in message.get("parts") or ():
        yield from _carried_thinking(facts)
        match facts:
            case {"functionCall": dict(call)}:
                input = orjson.dumps(call.get("args") or {}).decode()
                yield ToolCallPart(id=calls.called(call), name=call["name"], input=input)
            case {"functionResponse": dict(result)}:
                yield _result(result, calls.returned(result))
            case {"thought": True}:
                # Without its signature no provider accepts it, and with one it comes in front of the next part.
                pass
            case {"text": text} if text:
                yield TextPart(text=text)
            case {"inlineData": dict(data)}:
                yield _media(
                    data["mimeType"], f"data:{data['mimeType']};base64,{data['data']}", data.get("displayName")
                )
            case {"fileData": dict(data)}:
                yield _media(data.get("mimeType") or "", data["fileUri"], data.get("displayName"))


def _carried_thinking(facts: Json) -> Iterator[ThinkingPart]:
    """The thinking that the gateway put into the signature of the part behind it."""
    signature = facts.get("thoughtSignature")
    found = signatures.unpacked(signature) if isinstance(signature, str) else None
    if found is not None:
        yield ThinkingPart(text=found[0], signature=found[1])


def _media(kind: str, url: str, name: str | None) -> ImagePart | DocumentPart:
    return ImagePart(url=url) if kind.startswith("image/") else DocumentPart(url=url, name=name or "")


def _result(facts: Json, call: str) -> ToolResultPart:
    response = facts.get("response") or {}
    failed = "error" in response
    said = response.get("error") if failed else response.get("output", response)
    text = said if isinstance(said, str) else orjson.dumps(said).decode()
    shown = [
        _media(data["mimeType"], f"data:{data['mimeType']};base64,{data['data']}", data.get("displayName"))
        for data in (one.get("inlineData") for one in facts.get("parts") or ())
        if data
    ]
    return ToolResultPart(call=call, content=(*([TextPart(text=text)] if text else []), *shown), failed=failed)


def _tool(facts: Json) -> ToolDefinition:
    schema = facts.get("parametersJsonSchema") or _lowered(facts.get("parameters") or _NO_INPUT)
    return ToolDefinition(name=facts["name"], schema=schema, description=facts.get("description") or "")


def _lowered(schema: Json) -> Json:
    """A schema whose types are written as everywhere else; Google's own are in capitals."""
    return {
        key: value.lower() if key == "type" and isinstance(value, str) else _below(value)
        for key, value in schema.items()
    }


def _below(value: object) -> object:
    if isinstance(value, dict):
        return _lowered(value)
    return [_below(one) for one in value] if isinstance(value, list) else value


def _choice(facts: Json) -> tuple[ToolChoice, str]:
    choice = _CHOICES[facts.get("mode") or "AUTO"]
    names = list(facts.get("allowedFunctionNames") or [])
    if choice is ToolChoice.ANY and len(names) == 1:
        return ToolChoice.ONE, names[0]
    return choice, ""


def _effort(facts: Json) -> Effort | None:
    level, budget = facts.get("thinkingLevel"), facts.get("thinkingBudget")
    if level:
        return _LEVELS.get(level)
    if not budget:
        return None
    if budget == _DYNAMIC:
        return Effort.MEDIUM
    return next((effort for effort, most in _BUDGETS.items() if budget <= most), Effort.HIGH)


def _format(facts: Json) -> OutputFormat | None:
    if facts.get("responseMimeType") != _JSON:
        return None
    given = facts.get("responseSchema")
    return OutputFormat(schema=facts.get("responseJsonSchema") or (_lowered(given) if given else None))
