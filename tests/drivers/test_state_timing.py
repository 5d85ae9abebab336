"""When the tree is kept, as the messages of Claude Code come in."""

from __future__ import annotations

from pathlib import Path

from legion.drivers.claude.journal import StateTiming, may_change_files
from tests.drivers.test_tree_states import Studio


class Ear:
    """Tells a Keeping what Claude Code prints, and has what goes into the journal."""

    def __init__(self, studio: Studio) -> None:
        self.journal: list[tuple[str, object]] = []
        self._hear = StateTiming(lambda kind, **facts: self.journal.append((kind, facts["call"])), studio.store).handle

    def called(self, answer: object, *calls: str, tool: str = "Bash", parent: str | None = None) -> None:
        blocks = [{"type": "tool_use", "id": call, "name": tool} for call in calls]
        message = {"id": answer, "content": [{"type": "text"}, *blocks]}
        self._hear({"type": "assistant", "message": message, "parent_tool_use_id": parent})

    def returned(self, *calls: str, parent: str | None = None) -> None:
        blocks = [{"type": "tool_result", "tool_use_id": call} for call in calls]
        self._hear({"type": "user", "message": {"content": blocks}, "parent_tool_use_id": parent})


def test_calls_that_run_together_are_kept_once_when_all_have_returned(tmp_path: Path):
    ear = Ear(Studio(tmp_path))
    ear.called("one", "a")
    ear.called("one", "b", tool="Read")
    ear.returned("a")
    ear.called("deep", "x", parent="a")
    ear.returned("x", parent="a")
    assert ear.journal == []
    ear.returned("b")
    assert ear.journal == [("kept", "a")]


def test_calls_that_begin_while_the_model_still_writes_are_kept_one_by_one(tmp_path: Path):
    ear = Ear(Studio(tmp_path))
    for call in ("a", "b"):
        ear.called("one", call)
        ear.returned(call)
    assert ear.journal == [("kept", "a"), ("kept", "b")]


def test_a_call_that_was_cut_off_does_not_hold_up_what_comes_later(tmp_path: Path):
    ear = Ear(Studio(tmp_path))
    ear.called("one", "a", "cut")
    ear.returned("a")
    ear.called("two", "b")
    assert ear.journal == [("kept", "a")]
    ear.returned("b")
    assert ear.journal[1:] == [("kept", "b")]


def test_what_cannot_be_kept_is_written_down(tmp_path: Path):
    studio = Studio(tmp_path)
    ear = Ear(studio)
    studio.tree.rename(tmp_path / "elsewhere")
    for number in range(7):
        ear.called(number, f"call-{number}")
        ear.returned(f"call-{number}")
    assert ear.journal == [("not-kept", f"call-{number}") for number in range(5)]


def test_tools_that_only_read_change_no_state():
    assert [may_change_files(tool) for tool in ("Read", "Grep", "mcp__legion__legion-ask")] == [False] * 3
    assert all(may_change_files(tool) for tool in ("Bash", "Write", "mcp__other__read"))
