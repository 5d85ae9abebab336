"""Gemini CLI's chats: `tmp/PROJECT/chats/session-TIME-ID.jsonl`.

A message is written again, with the same id, when its calls have returned.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from legion.conversations.conversation import ConversationEntry, ConversationFacts, ConversationProgram, EntryRole
from legion.conversations.formats.lines import Line, LineFormat, call_text, number, seconds, text_of


def _begin(path: Path) -> ConversationFacts:
    facts = ConversationFacts(program=ConversationProgram.GEMINI, id=path.stem)
    with contextlib.suppress(OSError, ValueError):
        facts.folder = (path.parent.parent / ".project_root").read_text("utf-8").strip()[:4096]
    return facts


def _take(line: Line, facts: ConversationFacts) -> Iterator[ConversationEntry]:
    if "sessionId" in line:
        facts.id = str(line["sessionId"])
        return
    if "$set" in line:
        facts.note_title(line["$set"].get("summary"))
        return
    at, first = seconds(line.get("timestamp")), line.get("id") != facts.mark
    facts.mark = str(line.get("id"))
    facts.note_time(at)
    text = text_of(line.get("content")).strip()
    if line.get("type") == "user":
        if text and not text.startswith("<session_context>"):
            facts.note_prompt(text)
            yield ConversationEntry(role=EntryRole.PERSON, text=text, at=at)
    elif line.get("type") == "gemini":
        if first:
            yield from _answer(line, text, at, facts)
        for call in line.get("toolCalls") or ():
            yield ConversationEntry(role=EntryRole.CALL, text=call_text(call.get("name"), call.get("args")), at=at)
            if isinstance(call.get("resultDisplay"), str) and call["resultDisplay"]:
                yield ConversationEntry(role=EntryRole.RESULT, text=call["resultDisplay"], at=at)


def _answer(line: Line, text: str, at: float, facts: ConversationFacts) -> Iterator[ConversationEntry]:
    facts.messages += 1
    facts.model = str(line.get("model") or facts.model)
    used, sums = line.get("tokens") or {}, facts.sums(facts.model)
    cached = number(used.get("cached"))
    sums.input += max(0, number(used.get("input")) - cached)
    sums.output += number(used.get("output")) + number(used.get("thoughts"))
    sums.cache_read += cached
    if text:
        facts.note_answer(text)
        yield ConversationEntry(role=EntryRole.AGENT, text=text, at=at)


FORMAT = LineFormat(program=ConversationProgram.GEMINI, begin=_begin, take=_take)
