"""What a provider with a prompt cache would count."""

from __future__ import annotations

from typing import Any

from legion.rehearsal.play.player import CachedTokens, PromptCache

LONG = "x" * 400


def text(words: str, *, marked: bool = False) -> dict[str, Any]:
    return {"type": "text", "text": words} | ({"cache_control": {"type": "ephemeral"}} if marked else {})


def request(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"tools": [{"name": "Read"}], "messages": [{"role": "user", "content": list(blocks)}]}


def test_a_marked_prefix_is_written_once_and_read_from_then_on():
    cache = PromptCache()
    first = cache.count(request(text(LONG, marked=True), text("new")))
    assert (first.read, first.written > 100, 0 < first.new < 20) == (0, True, True)
    second = cache.count(request(text(LONG), text("other", marked=True)))
    assert (second.read, second.new) == (first.written, 0)
    assert 0 < second.written < 20
    changed = cache.count({**request(text(LONG, marked=True)), "tools": []})
    assert changed.read == 0, "a prefix holds everything before it"
    unmarked = PromptCache().count(request(text(LONG)))
    assert unmarked == CachedTokens(read=0, written=0, new=first.written)
