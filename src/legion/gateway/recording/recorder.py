"""Listens to the answers of recorded runs beside their streams, and puts them on tape without keys and tokens."""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from legion.gateway.dialects import registry
from legion.gateway.dialects.collect import collect_answer
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
"""How keys and tokens of the usual places look."""
_REDACTED = "REDACTED"
"""A plain word: it may stand in a command that is run again."""
_LONGEST_ANSWER = 32 << 20
_LONGEST_TAPE = 1 << 30


@dataclass(kw_only=True)
class StreamRecorder:
    """Hears one answer, whichever way it goes to its caller."""

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

    def hear(self, piece: bytes) -> None:
        """Bytes in the caller's own dialect."""
        self._size += len(piece)
        if self._size <= _LONGEST_ANSWER:
            self._pieces.append(piece)

    def note(self, events: Iterable[Event]) -> None:
        self._events += events

    def whole(self) -> ModelAnswer | None:
        """What was said, if it came to its end and can be understood."""
        try:
            if self.answer is not None:
                return self.answer
            if self._events:
                return collect_answer(self._events)
            heard = b"".join(self._pieces)
            if not heard or self._size > _LONGEST_ANSWER:
                return None
            if self.streamed:
                reader = StreamReader(self.dialect, RequestInfo())
                return collect_answer([*reader.feed(heard), *reader.end()])
            return registry.read_answer(self.dialect, loads(heard), RequestInfo())
        except (ModelFailed, UnreadableMessage):
            return None


def new_recorder(
    run: str, dialect: Dialect, conversation: str, headers: Mapping[str, str], body: bytes
) -> StreamRecorder:
    return StreamRecorder(run=run, dialect=dialect, conversation=conversation, agent=headers.get(_AGENT, ""), body=body)


def save(folder: GatewayFolder, heard: StreamRecorder) -> None:
    """Put it on the run's tape."""
    answer = heard.whole()
    if answer is None:
        return
    line = redact(dumps(facts_of(_take(heard, answer))).decode(), heard.secrets).encode() + b"\n"
    try:
        folder.tapes.mkdir(exist_ok=True, mode=0o700)
        path = folder.tapes / f"{heard.run}.jsonl"
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(handle).st_size + len(line) <= _LONGEST_TAPE:
                os.write(handle, line)
        finally:
            os.close(handle)
    except OSError as fault:
        log.error("A recording cannot be written (%s): make room in %s.", fault.strerror, folder.tapes)


def redact(text: str, secrets: Iterable[str]) -> str:
    """A text of JSON without them, and without what looks like one."""
    for secret in secrets:
        if secret:
            text = text.replace(dumps(secret).decode()[1:-1], _REDACTED)
    return _SECRET.sub(_REDACTED, text)


def _take(heard: StreamRecorder, answer: ModelAnswer) -> RecordedExchange:
    return RecordedExchange(
        at=round(time.time(), 3),
        path=_PATHS[heard.dialect],
        conversation=heard.conversation,
        agent=heard.agent,
        request=heard.body.decode("utf-8", "replace"),
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
