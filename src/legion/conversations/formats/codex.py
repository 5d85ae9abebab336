"""Codex's rollouts: `sessions/YEAR/MONTH/DAY/rollout-TIME-ID.jsonl`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from legion.conversations.conversation import (
    ConversationEntry,
    ConversationFacts,
    ConversationProgram,
    EntryRole,
    TokenSums,
)
from legion.conversations.formats.lines import Line, LineFormat, call_text, number, seconds, text_of

_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_CALLS = {"function_call": "arguments", "custom_tool_call": "input", "local_shell_call": "action"}
_RESULTS = ("function_call_output", "custom_tool_call_output")


def _begin(path: Path) -> ConversationFacts:
    found = _ID.search(path.stem)
    return ConversationFacts(program=ConversationProgram.CODEX, id=found[0] if found else path.stem)


def _take(line: Line, facts: ConversationFacts) -> Iterator[ConversationEntry]:
    given, at = line["payload"], seconds(line.get("timestamp"))
    facts.note_time(at)
    match line.get("type"):
        case "session_meta":
            facts.id = str(given.get("id") or facts.id)
            facts.folder = str(given.get("cwd") or "")
            facts.branch = str((given.get("git") or {}).get("branch") or "")
        case "turn_context":
            facts.model = str(given.get("model") or facts.model)
        case "event_msg" if given.get("type") == "token_count":
            _count(given, facts)
        case "event_msg" if given.get("type") == "thread_name_updated":
            facts.note_title(given.get("thread_name"))
        case "response_item":
            yield from _item(given, at, facts)


def _count(given: Line, facts: ConversationFacts) -> None:
    """The counts of the complete conversation, again and again."""
    used = (given.get("info") or {}).get("total_token_usage") or {}
    cached = number(used.get("cached_input_tokens"))
    facts.tokens[facts.model] = TokenSums(
        input=max(0, number(used.get("input_tokens")) - cached),
        output=number(used.get("output_tokens")),
        cache_read=cached,
    )


def _item(given: Line, at: float, facts: ConversationFacts) -> Iterator[ConversationEntry]:
    kind = given.get("type")
    if kind == "message":
        yield from _message(given, at, facts)
    elif kind in _CALLS:
        yield ConversationEntry(
            role=EntryRole.CALL, text=call_text(given.get("name", kind), given.get(_CALLS[kind])), at=at
        )
    elif kind in _RESULTS and (result := text_of(given.get("output"))):
        yield ConversationEntry(role=EntryRole.RESULT, text=result, at=at)


def _message(given: Line, at: float, facts: ConversationFacts) -> Iterator[ConversationEntry]:
    text = text_of(given.get("content")).strip()
    if not text:
        return
    if given.get("role") == "assistant":
        facts.messages += 1
        facts.note_answer(text)
        yield ConversationEntry(role=EntryRole.AGENT, text=text, at=at)
    elif given.get("role") == "user" and not text.startswith(("<", "# AGENTS.md instructions")):
        # What starts with a tag is context that the program adds.
        facts.note_prompt(text)
        yield ConversationEntry(role=EntryRole.PERSON, text=text, at=at)


FORMAT = LineFormat(program=ConversationProgram.CODEX, begin=_begin, take=_take)
