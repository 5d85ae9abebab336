"""Brings the index up to date with the files: what grew is read from where it ended, what is gone is removed.

Each step commits what it read together with how far it is, so it can be killed anywhere.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from legion.conversations.conversation import ConversationEntry, ConversationFacts, ConversationProgram
from legion.conversations.formats import opencode
from legion.conversations.index import Index
from legion.conversations.line_files import SEPARATOR, read_part
from legion.conversations.places import FORMATS, ConversationPlaces, FoundFile

STEP = 16 << 20
"""Bytes of files that are read for one transaction."""
_HEAD = 512


@dataclass(frozen=True, kw_only=True)
class Backlog:
    """The files that differ from the index."""

    changed: tuple[FoundFile, ...]
    """Newest first."""
    gone: tuple[str, ...]
    bytes: int
    files: int
    """Files of conversations that were found, changed or not."""


def backlog(index: Index, places: ConversationPlaces) -> Backlog:
    known, changed, missing = index.known(), [], 0
    files, databases = 0, set()
    gone = set(known)
    for file in places.found():
        files += 1
        if file.program is ConversationProgram.OPENCODE:
            databases.add(file.path)
            size, mtime, since = index.database(file.path)
            # Once it was read, only the sessions that changed are.
            done = file.size if since else 0
        else:
            gone.discard(file.path)
            size, mtime, done = known.get(file.path, (-1, 0, 0))
        if (size, mtime) != (file.size, file.mtime):
            changed.append(file)
            missing += file.size - done if file.size >= done else file.size
    gone = {path for path in gone if path.rpartition(SEPARATOR)[0] not in databases}
    changed.sort(key=lambda file: file.mtime, reverse=True)
    return Backlog(changed=tuple(changed), gone=tuple(gone), bytes=missing, files=files)


def catch_up(index: Index, places: ConversationPlaces, work: Backlog | None = None, *, step: int = STEP) -> None:
    """Read all that is new. One process at a time; see refresh.py."""
    work = work or backlog(index, places)
    done = 0
    with index.writing():
        index.note_progress(files=work.files, bytes=work.bytes, bytes_done=0)
        for path in work.gone:
            _remove(index, path)
    waiting: list[_Read | _DatabaseRead] = []
    size = 0
    for read in _all(index, work.changed, step):
        waiting.append(read)
        size += read.bytes
        if size >= step:
            done += size
            _commit(index, waiting, work, done)
            waiting, size = [], 0
    _commit(index, waiting, work, done + size)
    with index.writing():
        index.note_finished(time.time())


@dataclass(frozen=True, kw_only=True)
class _Read:
    """What was read of one file and is not committed yet."""

    file: FoundFile
    facts: ConversationFacts
    entries: list[ConversationEntry]
    head: str
    offset: int
    bytes: int
    afresh: bool = False
    """What the index holds of it is replaced."""


@dataclass(frozen=True, kw_only=True)
class _DatabaseRead:
    """A database of opencode was read to its end."""

    file: FoundFile
    since: int
    there: frozenset[str]
    """The paths of its sessions; those of others are removed."""
    bytes: int = 0


def _all(index: Index, files: Iterable[FoundFile], step: int) -> Iterator[_Read | _DatabaseRead]:
    for file in files:
        try:
            yield from (
                _database(index, file) if file.program is ConversationProgram.OPENCODE else _lines(index, file, step)
            )
        except (OSError, opencode.UnreadableDatabase):
            # It is read when it changes again.
            continue


def _lines(index: Index, file: FoundFile, step: int) -> Iterator[_Read]:
    format, path = FORMATS[file.program], Path(file.path)
    head, known = _head(path), index.at(file.path)
    grown = known is not None and known.offset <= file.size and head.startswith(known.head)
    if known is not None and grown:
        facts, offset = known.facts, known.offset
    else:
        facts, offset = format.begin(path), 0
    afresh = known is not None and not grown
    while True:
        part = read_part(path, format, facts, offset, step)
        read, offset = part.offset - offset, part.offset
        last = offset >= file.size or read == 0
        # Until the end is reached, the recorded size makes the next pass read the rest.
        seen = file if last else replace(file, size=offset, mtime=0)
        yield _Read(file=seen, facts=facts, entries=part.entries, head=head, offset=offset, bytes=read, afresh=afresh)
        afresh = False
        if last:
            return


def _head(path: Path) -> str:
    """The start of the file, as far as it is complete: it grows with the file, and never changes."""
    with path.open("rb") as file:
        start = file.read(_HEAD)
    return hashlib.sha256(start).hexdigest() if len(start) == _HEAD else ""


def _database(index: Index, file: FoundFile) -> Iterator[_Read | _DatabaseRead]:
    _, _, since = index.database(file.path)
    last, there = since, set()
    with opencode.opened(Path(file.path)) as database:
        for id, changed in opencode.sessions(database):
            place = f"{file.path}{SEPARATOR}{id}"
            there.add(place)
            last = max(last, changed)
            found = opencode.read(database, id) if changed > since else None
            if found is not None:
                facts, entries = found
                size = sum(len(entry.text) for entry in entries)
                one = replace(file, path=place, size=size)
                yield _Read(file=one, facts=facts, entries=entries, head="", offset=0, bytes=size, afresh=True)
    yield _DatabaseRead(file=file, since=last, there=frozenset(there))


def _commit(index: Index, reads: list[_Read | _DatabaseRead], work: Backlog, done: int) -> None:
    if not reads:
        return
    with index.writing():
        found: list[tuple[int, ConversationEntry, float]] = []
        for read in reads:
            if isinstance(read, _DatabaseRead):
                _close(index, read)
                continue
            if read.afresh and (known := index.at(read.file.path)) is not None:
                index.forget(known.n)
            n = index.save(read.file, read.facts, head=read.head, offset=read.offset)
            found += [(n, entry, read.file.mtime / 1e9) for entry in read.entries]
        index.add(found)
        index.note_progress(files=work.files, bytes=work.bytes, bytes_done=min(done, work.bytes))


def _close(index: Index, read: _DatabaseRead) -> None:
    for path in index.known():
        if path.startswith(f"{read.file.path}{SEPARATOR}") and path not in read.there:
            _remove(index, path)
    index.save_database(read.file, read.since)


def _remove(index: Index, path: str) -> None:
    if (known := index.at(path)) is not None:
        index.remove(known.n)
