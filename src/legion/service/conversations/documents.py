"""Writes a conversation as Markdown, JSON or HTML. Its texts are data: nothing in them can run or drive a terminal."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from legion.conversations.conversation import ConversationEntry, ConversationProgram, EntryRole, plain
from legion.conversations.formats import legion_run
from legion.conversations.formats.opencode import UnreadableDatabase
from legion.conversations.index import Indexed
from legion.conversations.line_files import read_all
from legion.conversations.places import FORMATS
from legion.domain.errors import BadInput, NotFound
from legion.domain.text import to_json
from legion.service.conversations.catalog import Catalog
from legion.wire.conversations import ConversationLine, ExportedConversation

MOST_CHARACTERS = 64 << 20
_NAMES = {EntryRole.PERSON: "Person", EntryRole.AGENT: "Agent", EntryRole.CALL: "Call", EntryRole.RESULT: "Result"}
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;font:14px/1.45 ui-monospace,monospace}"
    "section{border-top:1px solid #8886;padding:.5rem 0}h2{font-size:1rem;margin:.3rem 0}"
    "time{opacity:.6;font-weight:400}"
)


def export(catalog: Catalog, id: str = "", format: str = "md") -> ExportedConversation:
    if format not in _WRITERS:
        raise BadInput(f"There is no format {format[:20]!r}: choose one of {', '.join(_WRITERS)}.")
    found = catalog.one(id)
    (line,) = catalog.lines([found])
    try:
        entries = _limited(chain(_prompt(found), read_all(found.path, FORMATS.get(found.facts.program))))
    except (OSError, UnreadableDatabase) as error:
        raise NotFound(f"{found.path} cannot be read ({error}); `legion conversations` lists what is there.") from None
    text = _WRITERS[format](line, entries)
    return ExportedConversation(id=line.id, format=format, name=f"{line.program}-{line.id}.{format}", text=text)


def _prompt(found: Indexed) -> list[ConversationEntry]:
    """The first message of a run of Legion's; programs write theirs themselves."""
    if found.facts.program is not ConversationProgram.LEGION:
        return []
    text = legion_run.prompt(Path(found.path))
    return [ConversationEntry(role=EntryRole.PERSON, text=text, at=found.facts.started_at)] if text else []


def _limited(entries: Iterable[ConversationEntry]) -> list[ConversationEntry]:
    kept, size = [], 0
    for entry in entries:
        size += len(entry.text)
        if size > MOST_CHARACTERS:
            kept.append(
                ConversationEntry(role=EntryRole.RESULT, text="(the rest is too long for a document)", at=entry.at)
            )
            break
        kept.append(entry)
    return kept


def _facts(line: ConversationLine) -> list[tuple[str, str]]:
    known = [
        ("Program", line.program),
        ("Conversation", line.id),
        ("Project", line.project),
        ("Branch", line.branch),
        ("Model", line.model),
        ("Messages", str(line.messages)),
        ("Started", _time(line.started_at)),
        ("Last change", _time(line.modified_at)),
        ("Cost", "" if line.usd is None else f"${line.usd:.2f}"),
        ("Ticket", "" if line.ticket is None else str(line.ticket)),
        ("Broken lines", str(line.broken or "")),
    ]
    return [(name, " ".join(plain(value).split())) for name, value in known if value]


def _markdown(line: ConversationLine, entries: list[ConversationEntry]) -> str:
    title = " ".join(plain(line.title).split()) or line.id
    parts = [f"# {title}\n", *(f"- {name}: {value}" for name, value in _facts(line)), ""]
    for entry in entries:
        parts.append(f"## {_NAMES[entry.role]}, {_time(entry.at)}\n")
        text = plain(entry.text).strip()
        parts.append(_fenced(text) if entry.role in (EntryRole.CALL, EntryRole.RESULT) else text)
        parts.append("")
    return "\n".join(parts)


def _fenced(text: str) -> str:
    """With a fence that does not occur in the text."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"


def _json(line: ConversationLine, entries: list[ConversationEntry]) -> str:
    texts = [{"role": one.role.value, "at": one.at, "text": plain(one.text)} for one in entries]
    return to_json({"conversation": vars(line), "entries": texts}, indent=1) + "\n"


def _html(line: ConversationLine, entries: list[ConversationEntry]) -> str:
    title = html.escape(" ".join(plain(line.title).split()) or line.id)
    facts = "".join(f"<dt>{name}</dt><dd>{html.escape(value)}</dd>" for name, value in _facts(line))
    sections = "".join(
        f"<section><h2>{_NAMES[one.role]} <time>{_time(one.at)}</time></h2><pre>{html.escape(plain(one.text))}</pre>"
        "</section>\n"
        for one in entries
    )
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<style>{_STYLE}</style></head><body>\n<h1>{title}</h1>\n<dl>{facts}</dl>\n{sections}</body></html>\n"
    )


def _time(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC" if 0 < at < 8e9 else ""


_WRITERS: dict[str, Callable[[ConversationLine, list[ConversationEntry]], str]] = {
    "md": _markdown,
    "json": _json,
    "html": _html,
}
