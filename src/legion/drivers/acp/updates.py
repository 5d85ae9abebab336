"""Turns the updates of a session into events of the run's journal: text, thoughts, calls with diffs, plans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from acp import schema

from legion.domain.text import to_json
from legion.drivers.turns.journal import RunJournal, cut
from legion.drivers.turns.run import TurnActivity

_LONGEST_PATH = 300
_MOST_PLACES = 20
_MOST_STEPS = 200
_MOST_CALLS = 200
_LARGEST_INPUTS = 32 << 20
"""Of calls that are open at once; the oldest are forgotten."""
_LONGEST_TITLE = 1000
_LONGEST_TEXT = 1 << 20
"""Characters of a message or a result that are kept."""
_DONE = ("completed", "failed")


class _Call:
    """A use of a tool, from its first update to its last."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.kind = "other"
        self.title = ""
        self.input: Any = None
        self.size = 0
        """Of the input, as JSON."""
        self.places: list[str] = []
        self.diffs: list[dict[str, object]] = []
        self.text = ""
        self.began = False

    @property
    def tool(self) -> str:
        return self.kind if self.kind != "other" else cut(self.title, 60) or "other"

    @property
    def shown_input(self) -> object:
        return self.input if self.input not in (None, {}) else self.title

    @property
    def is_described(self) -> bool:
        """Some programs announce a call before the model has written its input."""
        return isinstance(self.input, dict) and bool(set(self.input) - {"cwd"})


class _Pieces:
    """The pieces of a text, as many as are kept."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._room = _LONGEST_TEXT

    def add(self, piece: str) -> None:
        if piece and self._room > 0:
            self._pieces.append(piece[: self._room])
            self._room -= len(piece)

    def take(self) -> str:
        text = "".join(self._pieces)
        self._pieces.clear()
        self._room = _LONGEST_TEXT
        return text


class Updates:
    """One method per kind of update. Text comes in pieces, and is recorded when something else follows."""

    def __init__(self, journal: RunJournal, activity: TurnActivity) -> None:
        self._journal = journal
        self._activity = activity
        self._text = _Pieces()
        self._thinking = _Pieces()
        self._calls: dict[str, _Call] = {}
        self.last_text = ""
        """The last message of the turn."""
        self.cost_usd: float | None = None

    def start_turn(self) -> None:
        self._calls.clear()
        self._activity.open_calls = 0
        self.last_text = ""

    def take(self, update: object) -> None:
        self._activity.note()
        match update:
            case schema.AgentMessageChunk(content=content):
                self._flush_thinking()
                self._text.add(_text_of(content))
            case schema.AgentThoughtChunk(content=content):
                self._flush_text()
                self._thinking.add(_text_of(content))
            case schema.ToolCallStart() | schema.ToolCallProgress():
                self._call_changed(update)
            case schema.AgentPlanUpdate(entries=entries):
                self._journal.record_plan(
                    [{"text": cut(one.content, 400), "status": str(one.status)} for one in entries[:_MOST_STEPS]]
                )
            case schema.UsageUpdate(cost=schema.Cost(amount=amount, currency="USD")):
                self.cost_usd = amount

    def end_turn(self) -> None:
        self._flush_thinking()
        self._flush_text()
        self._activity.open_calls = 0

    def begin(self, update: schema.ToolCallUpdate) -> tuple[str, str, object]:
        """The call that the program asks permission for: its id, tool and input."""
        call = self._merge(update)
        self._begin(call)
        return call.id, call.tool, call.shown_input

    def places_of(self, id: str) -> list[str]:
        call = self._calls.get(id)
        return [] if call is None else call.places

    def _call_changed(self, update: schema.ToolCallStart | schema.ToolCallProgress) -> None:
        self._flush_thinking()
        self._flush_text()
        call = self._merge(update)
        status = str(update.status or "")
        if status == "in_progress" or call.is_described or status in _DONE:
            self._begin(call)
        if status in _DONE:
            more: dict[str, object] = {"places": call.places} if call.places else {}
            if call.diffs:
                more["diffs"] = call.diffs
            self._journal.record_return(call.id, call.text, failed=status == "failed", **more)
            del self._calls[call.id]
            self._activity.open_calls = sum(one.began for one in self._calls.values())

    def _merge(self, update: schema.ToolCall | schema.ToolCallUpdate) -> _Call:
        id = cut(update.tool_call_id, _LONGEST_PATH)
        call = self._calls.setdefault(id, _Call(id))
        call.kind = str(update.kind or call.kind)
        call.title = cut(update.title or call.title, _LONGEST_TITLE)
        if isinstance(update.raw_input, dict) and isinstance(call.input, dict):
            call.input = {**call.input, **update.raw_input}
        elif update.raw_input is not None:
            call.input = update.raw_input
        if update.locations:
            call.places = [cut(one.path, _LONGEST_PATH) for one in update.locations[:_MOST_PLACES]]
        if update.content:
            call.diffs = _diffs(update.content) or call.diffs
            call.text = "\n".join(filter(None, map(_content_text, update.content))) or call.text
        if not call.text and update.raw_output is not None:
            call.text = _raw_text(update.raw_output)
        call.text = _shortened(call.text)
        if update.raw_input is not None:
            call.size = len(to_json(call.input, default=str))
        self._forget_oldest(call)
        return call

    def _forget_oldest(self, latest: _Call) -> None:
        while len(self._calls) > _MOST_CALLS or sum(one.size for one in self._calls.values()) > _LARGEST_INPUTS:
            oldest = next((id for id, one in self._calls.items() if one is not latest), None)
            if oldest is None:
                return
            del self._calls[oldest]

    def _begin(self, call: _Call) -> None:
        if call.began:
            return
        call.began = True
        self._activity.open_calls = sum(one.began for one in self._calls.values())
        self._journal.record_call(call.id, call.tool, call.shown_input)
        self._journal.record_start(call.id, call.tool, call.shown_input)

    def _flush_text(self) -> None:
        text = self._text.take()
        if text.strip():
            self.last_text = text
            self._journal.record_text(text)

    def _flush_thinking(self) -> None:
        thinking = self._thinking.take()
        if thinking:
            self._journal.record_thought(thinking)


def _shortened(text: str) -> str:
    """Its start and its end: the end has the sums of tests."""
    half = _LONGEST_TEXT // 2
    return text if len(text) <= _LONGEST_TEXT else f"{text[:half]}\n...\n{text[-half:]}"


def _text_of(content: object) -> str:
    match content:
        case schema.TextContentBlock(text=text):
            return text
        case _:
            return f"[{getattr(content, 'type', 'content')}]"


def _content_text(content: object) -> str:
    match content:
        case schema.ContentToolCallContent(content=inner):
            return _text_of(inner)
        case _:
            return ""


def _raw_text(output: object) -> str:
    if isinstance(output, dict):
        found = [output.get(name) for name in ("output", "content", "message", "error")]
        return "\n".join(one for one in found if isinstance(one, str))
    return output if isinstance(output, str) else ""


def _diffs(content: Sequence[object]) -> list[dict[str, object]]:
    """Which files a call changed, and by how many lines. The text itself is in the tree."""
    return [_diff(one) for one in content[:_MOST_PLACES] if isinstance(one, schema.FileEditToolCallContent)]


def _diff(one: schema.FileEditToolCallContent) -> dict[str, object]:
    lines: Callable[[str | None], int] = lambda text: len((text or "").splitlines())  # noqa: E731
    return {"path": cut(one.path, _LONGEST_PATH), "before": lines(one.old_text), "after": lines(one.new_text)}
