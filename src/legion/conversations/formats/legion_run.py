"""Journals of Legion's own runs, of any driver: `runs/NAME/journal.jsonl`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import orjson

from legion.conversations.conversation import ConversationEntry, ConversationFacts, ConversationProgram, EntryRole
from legion.conversations.formats.lines import Line, LineFormat


def _begin(path: Path) -> ConversationFacts:
    return ConversationFacts(program=ConversationProgram.LEGION, id=path.parent.name)


def _take(line: Line, facts: ConversationFacts) -> Iterator[ConversationEntry]:
    moment = line.get("time")
    at = float(moment) if isinstance(moment, int | float) else 0.0
    facts.note_time(at)
    match line.get("kind"):
        case "said" if isinstance(line.get("text"), str):
            facts.messages += 1
            facts.note_answer(line["text"])
            yield ConversationEntry(role=EntryRole.AGENT, text=line["text"], at=at)
        case "told" if isinstance(line.get("text"), str):
            facts.messages += 1
            facts.note_prompt(line["text"])
            yield ConversationEntry(role=EntryRole.PERSON, text=line["text"], at=at)
        case "called":
            yield ConversationEntry(role=EntryRole.CALL, text=f"{line.get('tool')}: {line.get('input')}", at=at)
        case "returned" if line.get("head"):
            yield ConversationEntry(role=EntryRole.RESULT, text=str(line["head"]), at=at)


def prompt(journal: Path) -> str:
    """The first message that the run's agent got, which its journal does not repeat; empty where it is not known."""
    with contextlib.suppress(OSError):
        lines = (line for line in journal.read_bytes().splitlines() if b'"conversation"' in line)
        with contextlib.suppress(ValueError):
            if any(orjson.loads(line).get("resumed") is True for line in lines):
                return _given(journal, "again.md")
        return _given(journal, "briefing.md")
    return ""


def _given(journal: Path, name: str) -> str:
    return (journal.parent / "given" / name).read_text("utf-8", "replace")


FORMAT = LineFormat(program=ConversationProgram.LEGION, begin=_begin, take=_take)
