"""Reports on all conversations: sums by program, project, model and day, and which ones need attention."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

from legion.conversations.index import Indexed
from legion.service.conversations.catalog import Catalog, is_orphaned
from legion.wire.conversations import Analytics, ConversationHealth, ConversationLine, ConversationSums

STALE_HOURS = 48.0
LARGE_MESSAGES = 1000
_MOST_LISTED = 100
_TOP = 10


def analytics(catalog: Catalog, now: float, hours: float, timeout: float) -> Analytics:
    with catalog.index(timeout) as (index, state):
        found = index.conversations(max(0.0, now - hours * 3600), with_parts=True)
    lines = catalog.lines(found)
    return Analytics(
        hours=hours,
        total=_sums("", lines),
        by_program=_by(lines, lambda line: line.program),
        by_project=_by(lines, lambda line: line.project),
        by_model=_by(lines, lambda line: line.model),
        by_day=sorted(_by(lines, _day), key=lambda sums: sums.key),
        index=state,
    )


def health(catalog: Catalog, now: float, hours: float, timeout: float) -> ConversationHealth:
    with catalog.index(timeout) as (index, state):
        every = index.conversations(max(0.0, now - hours * 3600))
        size = index.path.stat().st_size
    by_age = sorted(every, key=_end)
    groups: dict[str, list[Indexed]] = {
        "stale": [one for one in by_age if now - _end(one) > STALE_HOURS * 3600],
        "large": [one for one in every if one.facts.messages > LARGE_MESSAGES],
        "orphaned": [one for one in every if is_orphaned(one.facts)],
        "broken": [one for one in every if one.facts.broken],
    }
    largest = sorted(every, key=lambda one: one.size, reverse=True)

    def shown(some: Sequence[Indexed], most: int = _MOST_LISTED) -> list[ConversationLine]:
        return catalog.lines(some[:most])

    return ConversationHealth(
        hours=hours,
        conversations=len(every),
        bytes=sum(one.size for one in every),
        index_bytes=size,
        oldest=shown(by_age, _TOP),
        largest=shown(largest, _TOP),
        counts={name: len(group) for name, group in groups.items()},
        index=state,
        stale=shown(groups["stale"]),
        large=shown(groups["large"]),
        orphaned=shown(groups["orphaned"]),
        broken=shown(groups["broken"]),
    )


def _end(one: Indexed) -> float:
    return one.facts.ended_at or one.mtime / 1e9


def _day(line: ConversationLine) -> str:
    return f"{datetime.fromtimestamp(line.modified_at, UTC):%Y-%m-%d}"


def _by(lines: Iterable[ConversationLine], key: Callable[[ConversationLine], str]) -> list[ConversationSums]:
    groups: dict[str, list[ConversationLine]] = {}
    for line in lines:
        groups.setdefault(key(line), []).append(line)
    return sorted((_sums(name, group) for name, group in groups.items()), key=lambda sums: (-sums.usd, -sums.tokens))


def _sums(key: str, lines: Sequence[ConversationLine]) -> ConversationSums:
    return ConversationSums(
        key=key,
        conversations=len(lines),
        messages=sum(line.messages for line in lines),
        tokens=sum(line.tokens for line in lines),
        usd=sum(line.usd or 0.0 for line in lines),
        unpriced=sum(1 for line in lines if line.usd is None),
    )
