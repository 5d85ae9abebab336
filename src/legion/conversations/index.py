"""The index of conversations: a SQLite file with FTS5. One process writes, any number read.

Everything in it follows from files of other programs: a damaged index, or one of another version, is made again.
"""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from legion.conversations.conversation import (
    ConversationEntry,
    ConversationFacts,
    ConversationProgram,
    EntryRole,
    TokenSums,
    plain,
)
from legion.conversations.places import FoundFile

VERSION = 1
LONGEST_TEXT = {EntryRole.PERSON: 20_000, EntryRole.AGENT: 20_000, EntryRole.CALL: 300, EntryRole.RESULT: 200}
"""Characters of an entry that are indexed. Results are most of a file; their start says what they are."""
_COUNTER_BITS = 29
_PATIENCE = 5.0
_SCHEMA = Path(__file__).with_name("index.sql")
_COLUMNS = "n, path, program, id, facts, size, mtime, head, offset"


@dataclass(frozen=True, kw_only=True)
class Indexed:
    """A conversation as the index has it."""

    n: int
    path: str
    facts: ConversationFacts
    size: int
    mtime: int
    """Nanoseconds."""
    head: str
    offset: int


@dataclass(frozen=True, kw_only=True)
class IndexProgress:
    files: int
    bytes: int
    bytes_done: int
    entries: int
    finished_at: float
    """0: the first round is not complete."""


@dataclass(frozen=True, kw_only=True)
class Hit:
    conversation: Indexed
    role: EntryRole
    at: float
    excerpt: str
    """With the words that were found between \\x02 and \\x03."""


class Index:
    """One connection; a thread of its own for each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._database = _open(path)

    def close(self) -> None:
        self._database.close()

    # Writing

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """One transaction: what was read and how far the reading is."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    def save(self, file: FoundFile, facts: ConversationFacts, *, head: str, offset: int) -> int:
        """The conversation's number."""
        (n,) = self._database.execute(
            "INSERT INTO conversations"
            " (path, program, id, facts, parent, messages, ended_at, size, mtime, head, offset)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (path) DO UPDATE SET id = excluded.id, facts = excluded.facts, parent = excluded.parent,"
            " messages = excluded.messages, ended_at = excluded.ended_at, size = excluded.size,"
            " mtime = excluded.mtime, head = excluded.head, offset = excluded.offset RETURNING n",
            (
                *(file.path, file.program.value, facts.id, _as_json(facts), facts.parent, facts.messages),
                *(facts.ended_at or file.mtime / 1e9, file.size, file.mtime, head, offset),
            ),
        ).fetchone()
        return int(n)

    def add(self, entries: Iterable[tuple[int, ConversationEntry, float]]) -> None:
        """Entries with the number of their conversation, and the time of those that have none."""
        counter = int(self._database.execute("SELECT entries FROM progress").fetchone()[0])
        rows = []
        for n, entry, otherwise in entries:
            counter += 1
            text = plain(entry.text[: LONGEST_TEXT[entry.role]])
            rows.append((_entry_id(entry.at or otherwise, counter), n, entry.role.value, text))
        # FTS5 writes its buffer to the disk whenever an id is smaller than the one before.
        rows.sort()
        self._database.executemany("INSERT INTO entries VALUES (?, ?, ?, ?)", rows)
        self._database.executemany("INSERT INTO texts (rowid, text) VALUES (?, ?)", ((row[0], row[3]) for row in rows))
        self._database.execute("UPDATE progress SET entries = ?", (counter,))

    def forget(self, n: int) -> None:
        """Remove the entries of a conversation, which is read again from its start."""
        self._database.execute(
            "INSERT INTO texts (texts, rowid, text) SELECT 'delete', id, text FROM entries WHERE conversation = ?", (n,)
        )
        self._database.execute("DELETE FROM entries WHERE conversation = ?", (n,))

    def remove(self, n: int) -> None:
        self.forget(n)
        self._database.execute("DELETE FROM conversations WHERE n = ?", (n,))

    def save_database(self, file: FoundFile, since: int) -> None:
        """How far a database of opencode was read."""
        row = (file.path, file.size, file.mtime, since)
        self._database.execute("INSERT OR REPLACE INTO databases VALUES (?, ?, ?, ?)", row)

    def note_progress(self, *, files: int, bytes: int, bytes_done: int) -> None:
        self._database.execute("UPDATE progress SET files = ?, bytes = ?, bytes_done = ?", (files, bytes, bytes_done))

    def note_finished(self, at: float) -> None:
        self._database.execute("UPDATE progress SET finished_at = ?, bytes_done = bytes", (at,))

    # Reading

    def progress(self) -> IndexProgress:
        row = self._database.execute("SELECT files, bytes, bytes_done, entries, finished_at FROM progress").fetchone()
        return IndexProgress(files=row[0], bytes=row[1], bytes_done=row[2], entries=row[3], finished_at=row[4])

    def known(self) -> dict[str, tuple[int, int, int]]:
        """The size, the time and the offset of every file of lines, by its path."""
        rows = self._database.execute("SELECT path, size, mtime, offset FROM conversations")
        return {row[0]: (row[1], row[2], row[3]) for row in rows}

    def database(self, path: str) -> tuple[int, int, int]:
        """The size, the time, and up to when a database of opencode was read."""
        row = self._database.execute("SELECT size, mtime, since FROM databases WHERE path = ?", (path,)).fetchone()
        return (row[0], row[1], row[2]) if row is not None else (-1, 0, 0)

    def at(self, path: str) -> Indexed | None:
        row = self._database.execute(f"SELECT {_COLUMNS} FROM conversations WHERE path = ?", (path,)).fetchone()
        return None if row is None else _indexed(row)

    def conversations(self, since: float = 0.0, *, with_parts: bool = False) -> list[Indexed]:
        """Those with messages, newest first; with those of subagents only where they are asked for."""
        rows = self._database.execute(
            f"SELECT {_COLUMNS} FROM conversations WHERE ended_at >= ? AND messages > 0 AND (? OR parent = '')"
            " ORDER BY ended_at DESC",
            (since, with_parts),
        )
        return [_indexed(row) for row in rows]

    def named(self, start: str) -> list[Indexed]:
        """The conversations with this id, or whose id starts so; newest first."""
        pattern = start.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
        rows = self._database.execute(
            f"SELECT {_COLUMNS} FROM conversations WHERE id LIKE ? ESCAPE '\\' AND messages > 0 ORDER BY ended_at DESC",
            (pattern,),
        ).fetchall()
        found = [_indexed(row) for row in rows]
        return [one for one in found if one.facts.id == start] or found

    def search(self, expression: str, *, since: float, most: int) -> list[Hit]:
        """The newest entries that match, at most one of each conversation."""
        rows = self._database.execute(
            "SELECT rowid FROM texts WHERE texts MATCH ? AND rowid >= ? ORDER BY rowid DESC",
            (expression, _entry_id(since, 0)),
        )
        newest: dict[int, int] = {}
        for (id,) in rows:
            (n,) = self._database.execute("SELECT conversation FROM entries WHERE id = ?", (id,)).fetchone()
            newest.setdefault(n, id)
            if len(newest) >= most:
                break
        return [self._hit(expression, id) for id in newest.values()]

    def _hit(self, expression: str, id: int) -> Hit:
        excerpt, role, n = self._database.execute(
            "SELECT snippet(texts, 0, char(2), char(3), '…', 24), role, conversation"
            " FROM texts JOIN entries ON entries.id = texts.rowid WHERE texts MATCH ? AND texts.rowid = ?",
            (expression, id),
        ).fetchone()
        row = self._database.execute(f"SELECT {_COLUMNS} FROM conversations WHERE n = ?", (n,)).fetchone()
        at = float(id >> _COUNTER_BITS)
        return Hit(conversation=_indexed(row), role=EntryRole(role), at=at, excerpt=excerpt)


def _entry_id(at: float, counter: int) -> int:
    return int(min(max(at, 0.0), 8e9)) << _COUNTER_BITS | counter & (1 << _COUNTER_BITS) - 1


def _open(path: Path) -> sqlite3.Connection:
    try:
        return _prepared(path)
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
            raise
        for part in ("", "-wal", "-shm"):
            path.with_name(f"{path.name}{part}").unlink(missing_ok=True)
        return _prepared(path)


def _prepared(path: Path) -> sqlite3.Connection:
    """Raises DatabaseError where the file is damaged or of another version."""
    database = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
    try:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        if database.execute("PRAGMA user_version").fetchone()[0] != VERSION:
            _create(database)
    except BaseException:
        database.close()
        raise
    path.chmod(0o600)
    return database


def _create(database: sqlite3.Connection) -> None:
    database.execute("BEGIN IMMEDIATE")
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version == VERSION:
        database.execute("ROLLBACK")
        return
    if version:
        database.execute("ROLLBACK")
        raise sqlite3.DatabaseError(f"the index has version {version}")
    for statement in _statements(_SCHEMA.read_text("utf-8")):
        database.execute(statement)
    database.execute(f"PRAGMA user_version = {VERSION}")
    database.execute("COMMIT")


def _statements(script: str) -> Iterator[str]:
    statement = ""
    for line in script.splitlines():
        statement += f"{line}\n"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _as_json(facts: ConversationFacts) -> str:
    return json.dumps({**asdict(facts), "program": facts.program.value})


def _indexed(row: tuple[object, ...]) -> Indexed:
    n, path, program, _, text, size, mtime, head, offset = row
    known = json.loads(str(text))
    tokens = {model: TokenSums(**sums) for model, sums in known.pop("tokens").items()}
    facts = ConversationFacts(**{**known, "program": ConversationProgram(program)}, tokens=tokens)
    assert isinstance(n, int)
    assert isinstance(size, int)
    assert isinstance(mtime, int)
    assert isinstance(offset, int)
    return Indexed(n=n, path=str(path), facts=facts, size=size, mtime=mtime, head=str(head), offset=offset)


# The words that a person searches for, as an expression of FTS5. Nothing in them is an operator but quotes and a *.

_PART = re.compile(r'"([^"]*)"?|(\S+)')
_LEAST_PREFIX = 3


def expression(query: str) -> str:
    """All words must occur; `"two words"` must follow each other; `migr*` is the start of a word. Empty: no words."""
    parts = []
    for phrase, word in _PART.findall(query):
        text = (phrase or word).strip()
        bare = text.rstrip("*")
        starts = not phrase and text.endswith("*") and len(bare) >= _LEAST_PREFIX
        if any(letter.isalnum() for letter in bare):
            parts.append('"{}"{}'.format(bare.replace('"', '""'), "*" if starts else ""))
    return " ".join(parts)
