"""Reads and writes streamed answers of OpenAI's Responses API."""

from __future__ import annotations

from dataclasses import dataclass

from legion.gateway.counting.openai import responses_usage
from legion.gateway.dialects import errors
from legion.gateway.dialects.messages import (
    AnswerEnded,
    AnswerFailed,
    AnswerPart,
    AnswerStarted,
    Event,
    KeepAlive,
    PartEnded,
    PartGrew,
    PartKind,
    PartSigned,
    PartStarted,
    RequestInfo,
    StopReason,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)
from legion.gateway.dialects.responses.answer import head, new_id, signature_of, stop_of, usage_facts, written
from legion.gateway.dialects.sse import sse_event
from legion.gateway.json_text import Json, dumps

_Place = tuple[int, int]
_INCOMPLETE = {StopReason.LENGTH: "max_output_tokens", StopReason.REFUSAL: "content_filter"}


class ResponsesReader:
    """Reads one event at a time. A part is identified by the index of its item, and within a message of its content."""

    def __init__(self, info: RequestInfo) -> None:
        self._info = info
        self._parts: dict[_Place, int] = {}
        self._grown: set[_Place] = set()
        self._open: set[_Place] = set()
        self._calls = False
        self._started = False

    def read(self, facts: Json) -> list[Event]:
        match facts.get("type"):
            case "response.output_text.delta" | "response.refusal.delta":
                return self._grow(self._inside(facts), PartKind.TEXT, facts["delta"])
            case "response.function_call_arguments.delta":
                return self._grow(self._item(facts), PartKind.CALL, facts["delta"])
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                return self._grow(self._item(facts), PartKind.THINKING, facts["delta"])
            case "response.reasoning_summary_part.added" if facts.get("summary_index"):
                return self._grow(self._item(facts), PartKind.THINKING, "\n\n")
            case "response.content_part.done":
                return self._close(self._inside(facts))
            case "response.output_item.added":
                return self._added(facts)
            case "response.output_item.done":
                return self._done(facts)
            case "response.created" | "response.in_progress":
                return self._begin(facts["response"])
            case "response.completed" | "response.incomplete" | "response.done":
                return self._end(facts["response"])
            case "response.failed":
                return [AnswerFailed(error=errors.read({"error": facts["response"].get("error")}))]
            case "error":
                return [AnswerFailed(error=errors.read(facts if "error" in facts else {"error": facts}))]
            case "keepalive" | "ping":
                return [KeepAlive()]
            case _:
                return []

    def _begin(self, response: Json) -> list[Event]:
        if self._started:
            return []
        self._started = True
        return [AnswerStarted(id=response.get("id") or new_id("resp"), model=response.get("model") or self._info.model)]

    def _item(self, facts: Json) -> _Place:
        return facts["output_index"], -1

    def _inside(self, facts: Json) -> _Place:
        return facts["output_index"], facts.get("content_index") or 0

    def _start(self, place: _Place, kind: PartKind, id: str = "", name: str = "") -> list[Event]:
        self._parts[place] = index = len(self._parts)
        self._open.add(place)
        return [PartStarted(index=index, kind=kind, id=id, name=name)]

    def _grow(self, place: _Place, kind: PartKind, text: str) -> list[Event]:
        events = [] if place in self._parts else self._start(place, kind)
        if text:
            self._grown.add(place)
            events.append(PartGrew(self._parts[place], text))
        return events

    def _close(self, place: _Place) -> list[Event]:
        if place not in self._open:
            return []
        self._open.discard(place)
        return [PartEnded(index=self._parts[place])]

    def _added(self, facts: Json) -> list[Event]:
        item = facts["item"]
        match item["type"]:
            case "function_call":
                self._calls = True
                name = self._info.names.get(item["name"], item["name"])
                return self._start(self._item(facts), PartKind.CALL, item["call_id"], name)
            case "reasoning":
                return self._start(self._item(facts), PartKind.THINKING)
            case _:
                return []

    def _done(self, facts: Json) -> list[Event]:
        """The end of an item. Some servers send an item only here, complete."""
        item, place = facts["item"], self._item(facts)
        events: list[Event] = []
        if item["type"] in ("function_call", "reasoning") and place not in self._parts:
            events += self._added(facts)
        match item["type"]:
            case "function_call":
                if place not in self._grown:
                    events += self._grow(place, PartKind.CALL, item.get("arguments") or "")
            case "reasoning":
                if signature := signature_of(item):
                    events.append(PartSigned(index=self._parts[place], signature=signature))
            case "message":
                return self._close_message(facts, item)
        return events + self._close(place)

    def _close_message(self, facts: Json, item: Json) -> list[Event]:
        events: list[Event] = []
        for number, content in enumerate(item.get("content") or ()):
            place = (facts["output_index"], number)
            if place not in self._parts:
                events += self._grow(place, PartKind.TEXT, content.get("text") or content.get("refusal") or "")
            events += self._close(place)
        return events

    def _end(self, response: Json) -> list[Event]:
        events = self._begin(response)
        usage = responses_usage(response.get("usage"))
        return [*events, AnswerEnded(stop=stop_of(response, self._calls), usage=usage)]


@dataclass
class _Growing:
    """An item that is not complete yet."""

    started: PartStarted
    id: str
    text: str = ""
    signature: str = ""

    @property
    def part(self) -> AnswerPart:
        match self.started.kind:
            case PartKind.TEXT:
                return TextPart(text=self.text)
            case PartKind.THINKING:
                return ThinkingPart(text=self.text, signature=self.signature)
            case PartKind.CALL:
                return ToolCallPart(id=self.started.id, name=self.started.name, input=self.text or "{}")


_PREFIXES = {PartKind.TEXT: "msg", PartKind.THINKING: "rs", PartKind.CALL: "fc"}


class ResponsesWriter:
    """The dialect repeats each item complete at its end, and all of them at the end of the answer."""

    def __init__(self, info: RequestInfo) -> None:
        self._info = info
        self._head: Json = head(new_id("resp"), info.model, info)
        self._growing: dict[int, _Growing] = {}
        self._done: dict[int, Json] = {}
        self._number = 0

    def write(self, event: Event) -> bytes:
        match event:
            case PartGrew():
                return self._growth(event)
            case PartStarted():
                return self._part(event)
            case PartSigned():
                self._growing[event.index].signature = event.signature
                return b""
            case PartEnded():
                return self._part_end(event.index)
            case AnswerStarted():
                id = event.id if event.id.startswith("resp") else f"resp_{event.id}"
                self._head = head(id, event.model, self._info)
                return self._event("response.created", response=self._head) + self._event(
                    "response.in_progress", response=self._head
                )
            case AnswerEnded():
                return self._end(event)
            case KeepAlive():
                return b": waiting\n\n"
            case AnswerFailed():
                error = errors.openai(event.error)["error"]
                shown = {"code": error["code"] or error["type"], "message": error["message"]}
                return self._event("response.failed", response={**self._head, "status": "failed", "error": shown})

    def _part(self, event: PartStarted) -> bytes:
        one = _Growing(event, new_id("ctc" if event.name in self._info.free else _PREFIXES[event.kind]))
        self._growing[event.index] = one
        item = {**written(one.part, self._info, one.id), "status": "in_progress"}
        match event.kind:
            case PartKind.TEXT:
                item["content"] = []
            case PartKind.THINKING:
                del item["status"]
            case PartKind.CALL:
                item["input" if event.name in self._info.free else "arguments"] = ""
        added = self._event("response.output_item.added", output_index=event.index, item=item)
        if event.kind is PartKind.TEXT:
            added += self._inside("response.content_part.added", one, part=_text_part(""))
        return added

    def _growth(self, event: PartGrew) -> bytes:
        one = self._growing[event.index]
        one.text += event.text
        match one.started.kind:
            case PartKind.TEXT:
                return self._inside("response.output_text.delta", one, delta=event.text)
            case PartKind.THINKING:
                first = b""
                if one.text == event.text:
                    part = {"type": "summary_text", "text": ""}
                    first = self._summary("response.reasoning_summary_part.added", one, part=part)
                return first + self._summary("response.reasoning_summary_text.delta", one, delta=event.text)
            case PartKind.CALL:
                if one.started.name in self._info.free:
                    # The free text is wrapped in JSON, and can be read only when it is complete.
                    return b""
                return self._of_item("response.function_call_arguments.delta", one, delta=event.text)

    def _part_end(self, index: int) -> bytes:
        one = self._growing.pop(index)
        self._done[index] = item = written(one.part, self._info, one.id)
        done = b""
        match one.started.kind:
            case PartKind.TEXT:
                done = self._inside("response.output_text.done", one, text=one.text)
                done += self._inside("response.content_part.done", one, part=_text_part(one.text))
            case PartKind.THINKING if one.text:
                part = {"type": "summary_text", "text": one.text}
                done = self._summary("response.reasoning_summary_text.done", one, text=one.text)
                done += self._summary("response.reasoning_summary_part.done", one, part=part)
            case PartKind.CALL if "input" in item:
                done = self._of_item("response.custom_tool_call_input.delta", one, delta=item["input"])
                done += self._of_item("response.custom_tool_call_input.done", one, input=item["input"])
            case PartKind.CALL:
                done = self._of_item("response.function_call_arguments.done", one, arguments=item["arguments"])
        return done + self._event("response.output_item.done", output_index=index, item=item)

    def _end(self, event: AnswerEnded) -> bytes:
        reason = _INCOMPLETE.get(event.stop)
        status = "completed" if reason is None else "incomplete"
        response = {
            **self._head,
            "status": status,
            "incomplete_details": None if reason is None else {"reason": reason},
            "output": [self._done[index] for index in sorted(self._done)],
            "usage": usage_facts(event.usage),
        }
        return self._event(f"response.{status}", response=response)

    def _of_item(self, kind: str, one: _Growing, **facts: object) -> bytes:
        return self._event(kind, item_id=one.id, output_index=one.started.index, **facts)

    def _inside(self, kind: str, one: _Growing, **facts: object) -> bytes:
        return self._of_item(kind, one, content_index=0, **facts)

    def _summary(self, kind: str, one: _Growing, **facts: object) -> bytes:
        return self._of_item(kind, one, summary_index=0, **facts)

    def _event(self, kind: str, **facts: object) -> bytes:
        self._number += 1
        return sse_event(dumps({"type": kind, "sequence_number": self._number - 1, **facts}), kind)


def _text_part(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": []}
