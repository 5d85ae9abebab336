"""Where in a transcript a conversation can be taken up again."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

from legion.drivers.claude.transcript import is_there, point_after, size
from legion.drivers.profile import ConversationSize

TALK = "5a7b25b1-5c51-4bef-a564-4917dd9abf7a"


def name(number: int) -> str:
    return str(uuid.UUID(int=number))


def answer(number: int, message: str, *calls: str) -> dict[str, object]:
    content = [{"type": "tool_use", "id": call, "name": "Write", "input": {}} for call in calls]
    return {"type": "assistant", "uuid": name(number), "message": {"id": message, "content": content}}


def result(number: int, *calls: str, **more: object) -> dict[str, object]:
    content = [{"type": "tool_result", "tool_use_id": call, "content": "done"} for call in calls]
    return {"type": "user", "uuid": name(number), "message": {"content": content}, **more}


def write(folder: Path, *entries: object) -> Path:
    place = folder / "projects" / "here"
    place.mkdir(parents=True)
    lines = [entry if isinstance(entry, str) else json.dumps(entry) for entry in entries]
    (place / f"{TALK}.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return folder


def test_the_point_is_the_entry_with_the_result(tmp_path: Path):
    told = {"type": "user", "uuid": name(9), "message": {"content": "words"}}
    folder = write(tmp_path, told, answer(1, "m", "a"), result(2, "a"), answer(3, "n", "b"), result(4, "b"))
    assert point_after(folder, TALK, "a") == name(2)
    assert point_after(folder, TALK, "b") == name(4)
    assert is_there(folder, TALK)


def test_calls_of_one_answer_have_one_point_behind_all_of_them(tmp_path: Path):
    folder = write(tmp_path, answer(1, "m", "a"), result(2, "a"), answer(3, "m", "b"), result(4, "b"))
    assert point_after(folder, TALK, "a") == point_after(folder, TALK, "b") == name(4)


def test_there_is_none_while_a_call_of_the_answer_has_not_returned(tmp_path: Path):
    assert point_after(write(tmp_path, answer(1, "m", "a", "b"), result(2, "a")), TALK, "a") is None


def test_subagents_and_nonsense_are_passed_over(tmp_path: Path):
    aside = result(2, "a", isSidechain=True)
    forged = {**result(3, "a"), "uuid": "--model=other"}
    folder = write(tmp_path, "{", "[]", '"x"', {"type": "user", "message": 3}, answer(1, "m", "a"), aside, forged)
    assert point_after(folder, TALK, "a") is None
    assert point_after(folder, TALK, "unknown") is None
    assert point_after(folder, "another", "a") is None


def counted(number: int, **usage: object) -> dict[str, object]:
    entry = answer(number, f"m{number}")
    return {**entry, "message": {"id": f"m{number}", "content": [], "usage": usage}}


def test_the_size_is_that_of_the_last_answer_and_subagents_do_not_count(tmp_path: Path):
    first = counted(1, input_tokens=10, cache_read_input_tokens=200, cache_creation_input_tokens=30, output_tokens=4)
    aside = {**counted(2, input_tokens=9000), "isSidechain": True}
    odd = counted(3, input_tokens="many", output_tokens=-5)
    assert size(write(tmp_path, first, aside, odd, "no json"), TALK) == ConversationSize(tokens=244)
    assert size(tmp_path / "nowhere", TALK) == ConversationSize()


def test_a_compaction_by_the_program_is_seen_and_a_word_about_one_is_not(tmp_path: Path):
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": name(5)}
    talk = {"type": "user", "uuid": name(6), "message": {"content": "what is a compact_boundary?"}}
    assert size(write(tmp_path / "a", counted(1, input_tokens=7), boundary), TALK).compacted
    assert not size(write(tmp_path / "b", counted(1, input_tokens=7), talk), TALK).compacted
