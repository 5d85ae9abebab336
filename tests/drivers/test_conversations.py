"""Which prompts a described program's conversation holds."""

from __future__ import annotations

from pathlib import Path

from legion.drivers.turns import conversations

OURS, SESSION = "0d7e5ad8-aaaa-4bbb-8ccc-0123456789ab", "s-77"
PLACES = (".small/*/chats/*.jsonl",)


def stored(home: Path, name: str, *prompts: str) -> Path:
    path = home / ".small" / "one" / "chats" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(conversations.marked("Do it.", id) for id in prompts))
    return path


def test_a_marked_prompt_counts_as_delivered_where_the_conversations_file_holds_it(tmp_path: Path):
    conversations.remember(tmp_path, OURS, SESSION)
    stored(tmp_path, f"{SESSION}.jsonl", "p1", "p2")
    assert conversations.delivered(tmp_path, PLACES, OURS, ["p1", "p2", "p3"]) == {"p1", "p2"}


def test_a_prompt_of_another_conversation_or_behind_a_link_is_not_delivered(tmp_path: Path):
    stored(tmp_path, f"{SESSION}.jsonl", "p1")
    assert conversations.delivered(tmp_path, PLACES, OURS, ["p1"]) == frozenset(), "no conversation is remembered"
    conversations.remember(tmp_path, OURS, "s-78")
    assert conversations.delivered(tmp_path, PLACES, OURS, ["p1"]) == frozenset()
    outside = tmp_path / "outside"
    outside.write_text(f"s-78 {conversations.marked('', 'p1')}")
    (tmp_path / ".small/one/chats/s-78.jsonl").symlink_to(outside)
    assert conversations.delivered(tmp_path, PLACES, OURS, ["p1"]) == frozenset()
