"""Reads and writes streamed answers of OpenAI's Chat Completions API."""

from __future__ import annotations

import uuid

from legion.gateway.counting.counters import NO_TOKENS
from legion.gateway.counting.openai import chat_usage
from legion.gateway.dialects import errors, signatures
from legion.gateway.dialects.chat.answer import STOP_NAMES, new_call_id, stop_of, usage_facts
from legion.gateway.dialects.messages import (
    AnswerEnded,
    AnswerFailed,
    AnswerStarted,
    Event,
    KeepAlive,
    PartEnded,
    PartGrew,
    PartKind,
    PartSigned,
    PartStarted,
    RequestInfo,
)
from legion.gateway.dialects.sse import sse_event
from legion.gateway.json_text import Json, dumps

_DONE = b"data: [DONE]\n\n"


class ChatReader:
    """Reads one event at a time. The dialect does not mark where parts start and end: a change of their kind does.

    Calls stay open until something else follows, since their pieces may come in any order.
    """

    def __init__(self, info: RequestInfo) -> None:
        self._info = info
        self._started = False
        self._next = 0
        self._current: tuple[PartKind, int] | None = None
        self._calls: dict[int, int] = {}
        self._open_calls: list[int] = []
        self._usage = NO_TOKENS
        self._finish: object = None
        self._ended = False

    def read(self, facts: Json) -> list[Event]:
        if facts.get("error"):
            self._ended = True
            return [AnswerFailed(error=errors.read(facts))]
        events: list[Event] = []
        if "usage" in facts:
            self._usage = chat_usage(facts["usage"], self._usage)
        if not self._started:
            self._started = True
            id = facts.get("id") or f"chatcmpl-{uuid.uuid4().hex}"
            events.append(AnswerStarted(id=id, model=facts.get("model") or self._info.model, usage=self._usage))
        choices = facts.get("choices")
        if choices:
            self._choice(choices[0], events)
        return events

    def done(self) -> list[Event]:
        """The provider sent its last event."""
        if self._ended or not self._started:
            return []
        self._ended = True
        events: list[Event] = []
        self._quiet(events)
        self._close_calls(events)
        events.append(AnswerEnded(stop=stop_of(self._finish, bool(self._calls)), usage=self._usage))
        return events

    @property
    def finished(self) -> bool:
        """Whether the reason for the stop has come, so that only the last event may be missing."""
        return self._finish is not None

    def _choice(self, choice: Json, events: list[Event]) -> None:
        delta = choice.get("delta") or {}
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        if isinstance(thought, str) and thought:
            self._speak(PartKind.THINKING, thought, events)
        text = delta.get("content") or delta.get("refusal")
        if isinstance(text, str) and text:
            self._speak(PartKind.TEXT, text, events)
        for call in delta.get("tool_calls") or ():
            self._call(call, events)
        if choice.get("finish_reason") is not None:
            self._finish = choice["finish_reason"]

    def _speak(self, kind: PartKind, text: str, events: list[Event]) -> None:
        if self._current is None or self._current[0] is not kind:
            self._quiet(events)
            self._close_calls(events)
            self._current = (kind, self._take_index())
            events.append(PartStarted(index=self._current[1], kind=kind))
        events.append(PartGrew(self._current[1], text))

    def _call(self, call: Json, events: list[Event]) -> None:
        self._quiet(events)
        inside = call.get("function") or {}
        number = self._number(call)
        if number not in self._calls:
            self._calls[number] = index = self._take_index()
            self._open_calls.append(index)
            name = inside.get("name") or ""
            events.append(
                PartStarted(
                    index=index,
                    kind=PartKind.CALL,
                    id=call.get("id") or new_call_id(),
                    name=self._info.names.get(name, name),
                )
            )
        if inside.get("arguments"):
            events.append(PartGrew(self._calls[number], inside["arguments"]))

    def _number(self, call: Json) -> int:
        """The index of a call. Some providers do not number their calls: then each new id is a new call."""
        number = call.get("index")
        if isinstance(number, int):
            return number
        return len(self._calls) if call.get("id") or not self._calls else len(self._calls) - 1

    def _quiet(self, events: list[Event]) -> None:
        if self._current is not None:
            kind, index = self._current
            if kind is PartKind.THINKING:
                events.append(PartSigned(index=index, signature=signatures.CHAT))
            events.append(PartEnded(index=index))
            self._current = None

    def _close_calls(self, events: list[Event]) -> None:
        events += [PartEnded(index=index) for index in self._open_calls]
        self._open_calls.clear()

    def _take_index(self) -> int:
        self._next += 1
        return self._next - 1


class ChatWriter:
    def __init__(self, info: RequestInfo) -> None:
        self._info = info
        self._head: Json = {}
        self._kinds: dict[int, PartKind] = {}
        self._calls: dict[int, int] = {}

    def write(self, event: Event) -> bytes:
        match event:
            case PartGrew():
                return self._growth(event)
            case PartStarted():
                return self._part(event)
            case AnswerStarted():
                self._head = {
                    "id": event.id,
                    "object": "chat.completion.chunk",
                    "created": self._info.at,
                    "model": event.model,
                }
                return self._chunk({"role": "assistant", "content": ""})
            case AnswerEnded():
                return self._end(event)
            case KeepAlive():
                return b": waiting\n\n"
            case AnswerFailed():
                return sse_event(dumps(errors.openai(event.error)))
            case PartSigned() | PartEnded():
                return b""

    def _part(self, event: PartStarted) -> bytes:
        self._kinds[event.index] = event.kind
        if event.kind is not PartKind.CALL:
            return b""
        self._calls[event.index] = len(self._calls)
        call = {
            "index": self._calls[event.index],
            "id": event.id,
            "type": "function",
            "function": {"name": event.name, "arguments": ""},
        }
        return self._chunk({"tool_calls": [call]})

    def _growth(self, event: PartGrew) -> bytes:
        match self._kinds[event.index]:
            case PartKind.TEXT:
                return self._chunk({"content": event.text})
            case PartKind.THINKING:
                return self._chunk({"reasoning_content": event.text})
            case PartKind.CALL:
                call = {"index": self._calls[event.index], "function": {"arguments": event.text}}
                return self._chunk({"tool_calls": [call]})

    def _end(self, event: AnswerEnded) -> bytes:
        last = self._chunk({}, STOP_NAMES[event.stop])
        if self._info.count_stream:
            last += sse_event(dumps({**self._head, "choices": [], "usage": usage_facts(event.usage)}))
        return last + _DONE

    def _chunk(self, delta: Json, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return sse_event(dumps({**self._head, "choices": [choice]}))
