"""opencode's database: sessions, their messages and the parts of those. It is opened for reading only."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from legion.conversations.conversation import ConversationEntry, ConversationFacts, ConversationProgram, EntryRole
from legion.conversations.formats.lines import call_text, number, seconds

_PATIENCE = 1.0
_SESSION = """
    SELECT id, coalesce(parent_id, '') AS parent, directory, title, cost, time_created, time_updated
    FROM session
"""
_PARTS = """
    SELECT message.id AS message, message.data AS about, part.data AS part, message.time_created AS at
    FROM message LEFT JOIN part ON part.message_id = message.id
    WHERE message.session_id = ? ORDER BY message.time_created, message.id, part.id
"""


class UnreadableDatabase(Exception):
    """It is locked, damaged, or of another version."""


@contextlib.contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Without a write-ahead log the file is complete, and SQLite must not create one."""
    more = "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "immutable=1"
    try:
        with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?{more}", uri=True, timeout=_PATIENCE)) as database:
            database.row_factory = sqlite3.Row
            yield database
    except sqlite3.Error as error:
        raise UnreadableDatabase(str(error)) from error


def sessions(database: sqlite3.Connection) -> Iterator[tuple[str, int]]:
    """The ids of all sessions, and when each changed."""
    for row in database.execute("SELECT id, time_updated FROM session").fetchall():
        yield str(row["id"]), int(row["time_updated"])


def read(database: sqlite3.Connection, id: str) -> tuple[ConversationFacts, list[ConversationEntry]] | None:
    """One session; None where there is none."""
    found = database.execute(f"{_SESSION} WHERE id = ?", (id,)).fetchone()
    if found is None:
        return None
    facts = ConversationFacts(
        program=ConversationProgram.OPENCODE, id=id, parent=found["parent"], folder=found["directory"]
    )
    facts.note_title(_title(found["title"]))
    facts.note_time(seconds(found["time_created"]))
    facts.note_time(seconds(found["time_updated"]))
    facts.usd = float(found["cost"] or 0)
    entries: list[ConversationEntry] = []
    for row in database.execute(_PARTS, (id,)):
        try:
            entries += _entries(row, facts)
        except (AttributeError, KeyError, TypeError, ValueError):
            facts.broken += 1
    return facts, entries


def _title(text: str) -> str:
    """A model may have answered with JSON, which opencode stores as it is."""
    with contextlib.suppress(ValueError, AttributeError):
        return str(json.loads(text).get("title") or text)
    return text


def _entries(row: sqlite3.Row, facts: ConversationFacts) -> Iterator[ConversationEntry]:
    about: dict[str, Any] = json.loads(row["about"])
    at, by_person = seconds(row["at"]), about["role"] == "user"
    if row["message"] != facts.mark:
        facts.mark = row["message"]
        if not by_person:
            _count(about, facts)
    if row["part"] is None:
        return
    part: dict[str, Any] = json.loads(row["part"])
    if part["type"] == "text" and part["text"].strip() and not part.get("synthetic"):
        if by_person:
            facts.note_prompt(part["text"])
        else:
            facts.note_answer(part["text"])
        yield ConversationEntry(role=EntryRole.PERSON if by_person else EntryRole.AGENT, text=part["text"], at=at)
    elif part["type"] == "tool":
        state = part["state"]
        yield ConversationEntry(role=EntryRole.CALL, text=call_text(part["tool"], state.get("input")), at=at)
        if isinstance(state.get("output"), str) and state["output"]:
            yield ConversationEntry(role=EntryRole.RESULT, text=state["output"], at=at)


def _count(about: dict[str, Any], facts: ConversationFacts) -> None:
    facts.messages += 1
    facts.model = str(about.get("modelID") or facts.model)
    used, sums = about.get("tokens") or {}, facts.sums(facts.model)
    cache = used.get("cache") or {}
    sums.input += number(used.get("input"))
    sums.output += number(used.get("output")) + number(used.get("reasoning"))
    sums.cache_read += number(cache.get("read"))
    sums.cache_write += number(cache.get("write"))
