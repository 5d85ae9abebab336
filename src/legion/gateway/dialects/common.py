"""Rules that several dialects share: OpenAI's names for choices and effort, tool names, tool inputs, model families."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

import orjson

from legion.gateway.dialects.messages import (
    AnswerEnded,
    AnswerFailed,
    AnswerPart,
    AnswerStarted,
    Effort,
    Event,
    KeepAlive,
    ModelAnswer,
    ModelFailed,
    PartEnded,
    PartGrew,
    PartKind,
    PartSigned,
    PartStarted,
    StopReason,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolChoice,
    ToolDefinition,
)
from legion.gateway.json_text import Json, UnreadableMessage

CHOICES = {"auto": ToolChoice.AUTO, "required": ToolChoice.ANY, "none": ToolChoice.NONE}
"""OpenAI's names for how a model may use tools, the same in both of its APIs."""
CHOICE_NAMES = {choice: name for name, choice in CHOICES.items()}
EFFORTS = {"minimal": Effort.LOW, "low": Effort.LOW, "medium": Effort.MEDIUM, "high": Effort.HIGH, "xhigh": Effort.HIGH}

_MAX_NAME = 64
_DIGEST = 8
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
_FREE_TEXT: Json = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
_REASONING = re.compile(r"(openai/)?(o\d|gpt-([5-9]|\d\d)|codex|computer-use)", re.IGNORECASE)
_CLAUDE = re.compile(r"claude-(?:[a-z]+-)?(\d)(?:[-.](\d{1,2})(?!\d))?")
_ADAPTIVE_SINCE = (4, 6)


def short_name(name: str) -> str:
    """A tool's name within the limits of OpenAI's dialects; always the same for the same name."""
    if len(name) <= _MAX_NAME and not _NOT_IN_NAMES.search(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
    return f"{_NOT_IN_NAMES.sub('_', name)[: _MAX_NAME - _DIGEST - 1]}_{digest}"


def original_names(tools: Iterable[ToolDefinition]) -> dict[str, str]:
    """Maps short names to the caller's own, where they differ."""
    return {short_name(tool.name): tool.name for tool in tools if short_name(tool.name) != tool.name}


def call_id(id: str) -> str:
    """The id of a call in the characters that Anthropic accepts."""
    return _NOT_IN_NAMES.sub("_", id)


def schema_of(tool: ToolDefinition) -> Json:
    """The tool's schema. A tool of free text becomes one with a single field, `input`."""
    return _FREE_TEXT if tool.schema is None else tool.schema


def input_of(call: ToolCallPart) -> Json:
    """The call's input as an object, which Anthropic requires. Models may write other JSON, or none."""
    try:
        found = orjson.loads(call.input) if call.input.strip() else {}
    except orjson.JSONDecodeError:
        return {"input": call.input}
    return found if isinstance(found, dict) else {"input": found}


def wrap_text(text: str) -> str:
    """Free text as the JSON input of a call."""
    return orjson.dumps({"input": text}).decode()


def free_text(call: ToolCallPart) -> str:
    """The reverse of `wrap_text`."""
    found = input_of(call).get("input", "")
    return found if isinstance(found, str) else orjson.dumps(found).decode()


def takes_effort(model: str) -> bool:
    """True for OpenAI's reasoning models, which accept an effort and name the answer's length limit differently."""
    return _REASONING.match(model) is not None


def thinks_adaptively(model: str) -> bool:
    """True for Anthropic's models that choose the length of their thinking themselves."""
    found = _CLAUDE.search(model)
    return found is not None and (int(found[1]), int(found[2] or 0)) >= _ADAPTIVE_SINCE


def is_claude_elsewhere(model: str) -> bool:
    """True for Anthropic's models behind an API of OpenAI's kind, which accepts their cache marks too."""
    return model.startswith("anthropic/")


def events_of(answer: ModelAnswer) -> Iterator[Event]:
    yield AnswerStarted(id=answer.id, model=answer.model, usage=answer.usage)
    for index, part in enumerate(answer.parts):
        match part:
            case TextPart():
                yield PartStarted(index=index, kind=PartKind.TEXT)
                yield PartGrew(index, part.text)
            case ThinkingPart():
                yield PartStarted(index=index, kind=PartKind.THINKING)
                if part.text:
                    yield PartGrew(index, part.text)
                if part.signature:
                    yield PartSigned(index=index, signature=part.signature)
            case ToolCallPart():
                yield PartStarted(index=index, kind=PartKind.CALL, id=part.id, name=part.name)
                yield PartGrew(index, part.input)
        yield PartEnded(index=index)
    yield AnswerEnded(stop=answer.stop, sequence=answer.sequence, usage=answer.usage)


def collect_answer(events: Iterable[Event]) -> ModelAnswer:
    """The complete answer. Raises ModelFailed where the stream ends with an error, UnreadableMessage without an end."""
    parts: dict[int, AnswerPart] = {}
    answer = ModelAnswer(id="", model="", parts=(), stop=StopReason.END)
    for event in events:
        match event:
            case AnswerStarted():
                answer = replace(answer, id=event.id, model=event.model)
            case PartStarted():
                parts[event.index] = _started(event)
            case PartGrew():
                parts[event.index] = _grown(parts[event.index], event.text)
            case PartSigned():
                parts[event.index] = ThinkingPart(text=_text(parts[event.index]), signature=event.signature)
            case AnswerFailed():
                raise ModelFailed(event.error)
            case AnswerEnded():
                in_order = tuple(parts[index] for index in sorted(parts))
                return replace(answer, parts=in_order, stop=event.stop, sequence=event.sequence, usage=event.usage)
            case PartEnded() | KeepAlive():
                pass
    raise UnreadableMessage("the stream broke off")


def _started(event: PartStarted) -> AnswerPart:
    match event.kind:
        case PartKind.TEXT:
            return TextPart(text="")
        case PartKind.THINKING:
            return ThinkingPart()
        case PartKind.CALL:
            return ToolCallPart(id=event.id, name=event.name, input="")


def _grown(part: AnswerPart, text: str) -> AnswerPart:
    match part:
        case ToolCallPart():
            return replace(part, input=part.input + text)
        case TextPart() | ThinkingPart():
            return replace(part, text=part.text + text)


def _text(part: AnswerPart) -> str:
    return "" if isinstance(part, ToolCallPart) else part.text
