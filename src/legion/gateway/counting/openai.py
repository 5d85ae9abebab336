"""Counters that read usage from OpenAI's answers, Chat Completions and Responses, as they pass."""

from __future__ import annotations

from legion.gateway.counting.counters import NO_TOKENS, AnswerSummary, TokenCounts, note_error, number, parse

_MAX_LINE = 4 << 20
_MAX_BODY = 32 << 20


def chat_usage(usage: object, old: TokenCounts = NO_TOKENS) -> TokenCounts:
    """OpenAI counts cached tokens as part of the prompt; here they are counted apart."""
    return _usage(usage, old, "prompt_tokens", "completion_tokens", "prompt_tokens_details")


def responses_usage(usage: object, old: TokenCounts = NO_TOKENS) -> TokenCounts:
    return _usage(usage, old, "input_tokens", "output_tokens", "input_tokens_details")


def _usage(usage: object, old: TokenCounts, read: str, written: str, details: str) -> TokenCounts:
    if not isinstance(usage, dict):
        return old
    parts = usage.get(details)
    parts = parts if isinstance(parts, dict) else {}
    cached, stored = number(parts.get("cached_tokens")), number(parts.get("cache_write_tokens"))
    return TokenCounts(
        input=max(0, number(usage.get(read)) - cached - stored),
        output=number(usage.get(written)),
        cache_read=cached,
        cache_write=stored,
    )


class OpenAIStreamCounter:
    """Server-sent events of either dialect."""

    def __init__(self) -> None:
        self.summary = AnswerSummary()
        self._rest = b""

    def feed(self, piece: bytes) -> None:
        *lines, self._rest = (self._rest + piece).split(b"\n")
        if len(self._rest) > _MAX_LINE:
            self._rest = b""
        for line in lines:
            if line.startswith(b"data:") and (b'"usage"' in line or b'"error"' in line or b"[DONE]" in line):
                self._read(line[5:].strip())

    def end(self) -> None:
        self.feed(b"\n")

    def _read(self, data: bytes) -> None:
        if data == b"[DONE]":
            self.summary.complete = True
            return
        facts = parse(data)
        if facts is None:
            return
        kind = facts.get("type")
        if isinstance(kind, str) and kind.startswith("response."):
            _note(self.summary, facts.get("response"))
            self.summary.complete = self.summary.complete or kind in ("response.completed", "response.incomplete")
        else:
            _note(self.summary, facts)


class OpenAIBodyCounter:
    """One JSON document of either dialect."""

    def __init__(self) -> None:
        self.summary = AnswerSummary()
        self._body = bytearray()

    def feed(self, piece: bytes) -> None:
        if len(self._body) <= _MAX_BODY:
            self._body += piece

    def end(self) -> None:
        self.summary.complete = True
        if len(self._body) <= _MAX_BODY:
            _note(self.summary, parse(bytes(self._body)))


def _note(summary: AnswerSummary, facts: object) -> None:
    if not isinstance(facts, dict):
        return
    if isinstance(facts.get("model"), str):
        summary.model = facts["model"]
    usage = facts.get("usage")
    if isinstance(usage, dict):
        summary.usage = chat_usage(usage) if "prompt_tokens" in usage else responses_usage(usage)
    if isinstance(facts.get("error"), dict):
        note_error(summary, facts["error"])


class UsageHider:
    """Removes the event that holds only usage, for callers of Chat Completions that did not ask for it."""

    def __init__(self) -> None:
        self.rest = b""

    def feed(self, piece: bytes) -> bytes:
        *events, self.rest = (self.rest + piece).split(b"\n\n")
        return b"".join(event + b"\n\n" for event in events if not _is_only_usage(event))


def _is_only_usage(event: bytes) -> bool:
    if b'"usage"' not in event:
        return False
    facts = parse(event.removeprefix(b"data:"))
    return facts is not None and facts.get("choices") == []
