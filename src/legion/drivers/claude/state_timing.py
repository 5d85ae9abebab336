"""Records the tree once all calls of an answer have returned, before the model's next answer.

The runner does nothing else meanwhile, and no call starts before the runner has read its message: a state holds all of
these calls and nothing later. Claude Code may start calls while the model still writes its answer; then the tree is
recorded several times, and the last state counts. Background processes may change the tree at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from legion.drivers.tree_states import StateRecorder, StateStore

_READS_ONLY = frozenset(
    {
        "Read", "Glob", "Grep", "LS", "NotebookRead", "WebFetch", "WebSearch", "TodoWrite", "ToolSearch", "BashOutput",
        "TaskOutput", "ListMcpResources", "ReadMcpResource", "ExitPlanMode", "EnterPlanMode", "AskUserQuestion",
    }
)  # fmt: skip


def may_change_files(tool: str) -> bool:
    """Legion's own tools do not touch the tree."""
    return tool not in _READS_ONLY and not tool.startswith("mcp__legion__")


class StateTiming:
    def __init__(self, record: Callable[..., None], store: StateStore) -> None:
        """`record` appends to the run's journal."""
        self._record = record
        self._base = store.base
        self._recorder = StateRecorder(store)
        self._answer: object = None
        self._open: dict[str, str] = {}
        """The calls of this answer that have not returned, and their tools."""
        self._due: tuple[str, str] | None = None
        """The last call that may have changed the tree, and its tool."""

    def handle(self, message: Mapping[str, Any]) -> None:
        """Gets every message of Claude Code, in order. A conversation cannot be rewound to a subagent's call."""
        if message.get("parent_tool_use_id") is not None:
            return
        match message:
            case {"type": "assistant", "message": {"id": answer}}:
                if answer != self._answer:
                    self._answer = answer
                    # Calls that were cut off will not return.
                    self._open.clear()
                    self._record_state()
                self._open |= {str(call.get("id")): str(call.get("name")) for call in _blocks(message, "tool_use")}
            case {"type": "user"}:
                for result in _blocks(message, "tool_result"):
                    self._returned(str(result.get("tool_use_id")))

    def _returned(self, call: str) -> None:
        tool = self._open.pop(call, None)
        if tool is not None and not self._recorder.gave_up and may_change_files(tool):
            self._due = (call, tool)
        if not self._open:
            self._record_state()

    def _record_state(self) -> None:
        if self._due is None:
            return
        (call, tool), self._due = self._due, None
        state = self._recorder.record()
        if state is None:
            self._record("not-kept", call=call, tool=tool)
            return
        facts = {"tree": state.tree, "base": self._base, "roll": state.roll, "ms": state.ms}
        self._record("kept", call=call, tool=tool, **facts)


def _blocks(message: Mapping[str, Any], kind: str) -> Iterator[Mapping[str, Any]]:
    match message.get("message"):
        case {"content": list(blocks)}:
            for block in blocks:
                if isinstance(block, dict) and block.get("type") == kind:
                    yield block
