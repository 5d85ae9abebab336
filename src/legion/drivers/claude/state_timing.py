"""Keeps the tree once the calls of an answer have returned, while the model thinks about them.

The runner does nothing else meanwhile, and no call begins before it has heard of it: a state holds all of these calls
and nothing of what comes after. Claude Code may begin calls while the model still writes its answer; then the tree is
kept several times, and the last one counts. What runs in the background may change the tree at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from legion.drivers.tree_states import StateRecorder, StateStore


class StateTiming:
    def __init__(self, record: Callable[..., None], camera: StateStore) -> None:
        """`record` appends to the run's journal."""
        self._record = record
        self._base = camera.base
        self._shutter = StateRecorder(camera)
        self._answer: object = None
        self._open: dict[str, str] = {}
        """The calls of this answer that have not returned, with their tools."""
        self._due: tuple[str, str] | None = None
        """The last call that may have changed the tree, and its tool."""

    def hear(self, message: Mapping[str, Any]) -> None:
        """Every message of Claude Code, in their order. A subagent's calls are no place that one could go back to."""
        if message.get("parent_tool_use_id") is not None:
            return
        match message:
            case {"type": "assistant", "message": {"id": answer}}:
                if answer != self._answer:
                    self._answer = answer
                    # What was cut off does not return any more.
                    self._open.clear()
                    self._keep()
                self._open |= {str(call.get("id")): str(call.get("name")) for call in _blocks(message, "tool_use")}
            case {"type": "user"}:
                for result in _blocks(message, "tool_result"):
                    self._returned(str(result.get("tool_use_id")))

    def _returned(self, call: str) -> None:
        tool = self._open.pop(call, None)
        if tool is not None and self._shutter.wants(tool):
            self._due = (call, tool)
        if not self._open:
            self._keep()

    def _keep(self) -> None:
        if self._due is None:
            return
        (call, tool), self._due = self._due, None
        shot = self._shutter.take()
        if shot is None:
            self._record("not-kept", call=call, tool=tool)
            return
        kept = {"tree": shot.tree, "base": self._base, "roll": shot.roll, "ms": shot.ms}
        self._record("kept", call=call, tool=tool, **kept)


def _blocks(message: Mapping[str, Any], kind: str) -> Iterator[Mapping[str, Any]]:
    match message.get("message"):
        case {"content": list(blocks)}:
            for block in blocks:
                if isinstance(block, dict) and block.get("type") == kind:
                    yield block
