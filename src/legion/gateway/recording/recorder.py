"""Records the answers of recorded runs as they are streamed, and writes them to tapes without keys and tokens."""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from legion.gateway.dialects import registry
from legion.gateway.dialects.common import collect_answer
from legion.gateway.dialects.messages import (
    Event,
    ModelAnswer,
    ModelFailed,
    RequestInfo,
    StopReason,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)
from legion.gateway.dialects.registry import Dialect, StreamReader
from legion.gateway.files.folder import GatewayFolder
from legion.gateway.json_text import UnreadableMessage, dumps, loads
from legion.gateway.recording.tape import RecordedCall, RecordedExchange, facts_of

log = logging.getLogger("legion.gateway")

_AGENT = "x-claude-code-agent-id"
_PATHS = {
    Dialect.ANTHROPIC: "/v1/messages",
    Dialect.CHAT: "/v1/chat/completions",
    Dialect.RESPONSES: "/v1/responses",
    Dialect.GEMINI: "/v1beta/models",
}
_STOPS = {
    StopReason.END: "end_turn",
    StopReason.CALLS: "tool_use",
    StopReason.LENGTH: "max_tokens",
    StopReason.SEQUENCE: "stop_sequence",
    StopReason.REFUSAL: "refusal",
    StopReason.PAUSE: "pause_turn",
}
_SECRET = re.compile(
    r"\b(?:legion-[\w-]{40,}|sk-[\w-]{16,}|gh[a-z]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[a-z]-[\w-]{10,}"
    r"|AKIA[0-9A-Z]{16}|AIza[\w-]{30,}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{5,})"
)
"""Patterns of keys and tokens of common services."""
_REDACTED = "REDACTED"
"""Plain letters: it may become part of a command that is run again."""
_MAX_ANSWER = 32 << 20
_MAX_TAPE = 1 << 30


@dataclass(kw_only=True)
class StreamRecorder:
    """Collects one answer: as bytes, as events or complete, whichever way it is sent to its caller."""

    run: str
    dialect: Dialect
    conversation: str
    agent: str
    body: bytes
    secrets: set[str] = field(default_factory=set)
    streamed: bool = False
    answer: ModelAnswer | None = None
    _pieces: list[bytes] = field(default_factory=list)
    _events: list[Event] = field(default_factory=list)
    _size: int = 0

    def feed(self, piece: bytes) -> None:
        """Add bytes in the caller's own dialect."""
        self._size += len(piece)
        if self._size <= _MAX_ANSWER:
            self._pieces.append(piece)

    def note(self, events: Iterable[Event]) -> None:
        self._events += events

    def complete_answer(self) -> ModelAnswer | None:
        """The answer, if it came to its end and can be read."""
        try:
            if self.answer is not None:
                return self.answer
            if self._events:
                return collect_answer(self._events)
            body = b"".join(self._pieces)
            if not body or self._size > _MAX_ANSWER:
                return None
            if self.streamed:
                reader = StreamReader(self.dialect, RequestInfo())
                return collect_answer([*reader.feed(body), *reader.end()])
            return registry.read_answer(self.dialect, loads(body), RequestInfo())
        except (ModelFailed, UnreadableMessage):
            return None


def new_recorder(
    run: str, dialect: Dialect, conversation: str, headers: Mapping[str, str], body: bytes
) -> StreamRecorder:
    return StreamRecorder(run=run, dialect=dialect, conversation=conversation, agent=headers.get(_AGENT, ""), body=body)


def save(folder: GatewayFolder, recorder: StreamRecorder) -> None:
    """Append the answer to the run's tape, if it is complete."""
    answer = recorder.complete_answer()
    if answer is None:
        return
    line = redact(dumps(facts_of(_exchange(recorder, answer))).decode(), recorder.secrets).encode() + b"\n"
    try:
        folder.tapes.mkdir(exist_ok=True, mode=0o700)
        path = folder.tapes / f"{recorder.run}.jsonl"
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(handle).st_size + len(line) <= _MAX_TAPE:
                os.write(handle, line)
        finally:
            os.close(handle)
    except OSError as fault:
        log.error("A recording cannot be written (%s): make room in %s.", fault.strerror, folder.tapes)


def redact(text: str, secrets: Iterable[str]) -> str:
    """A JSON text without the secrets, and without anything that looks like one."""
    for secret in secrets:
        if secret:
            text = text.replace(dumps(secret).decode()[1:-1], _REDACTED)
    return _SECRET.sub(_REDACTED, text)


def _exchange(recorder: StreamRecorder, answer: ModelAnswer) -> RecordedExchange:
    return RecordedExchange(
        at=round(time.time(), 3),
        path=_PATHS[recorder.dialect],
        conversation=recorder.conversation,
        agent=recorder.agent,
        request=recorder.body.decode("utf-8", "replace"),
        thought="".join(part.text for part in answer.parts if isinstance(part, ThinkingPart)),
        text="".join(part.text for part in answer.parts if isinstance(part, TextPart)),
        calls=tuple(
            RecordedCall(tool=part.name, input=part.input) for part in answer.parts if isinstance(part, ToolCallPart)
        ),
        stop=_STOPS[answer.stop],
        input=answer.usage.input,
        output=answer.usage.output,
        cache_read=answer.usage.cache_read,
        cache_write=answer.usage.cache_write,
    )
