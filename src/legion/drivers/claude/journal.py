"""Writes Claude Code's messages as events of the run's journal and lines of its log, and judges how it ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from claude_agent_sdk import (
    AssistantMessage,
    Message,
    RateLimitEvent,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)

from legion.drivers import Ending, EndKind, Host
from legion.drivers.tree_states import StateRecorder, StateStore
from legion.drivers.turns.journal import LONGEST_RESULT, RunJournal, cut, summary
from legion.drivers.turns.outcome import (
    BUDGET_MARK,
    INTERRUPTED,
    NO_ANSWER,
    NO_KEY,
    StopCause,
    finished,
    readable,
    short,
    stuck_reason,
)

_IGNORED = frozenset({"init", "status", "hook_started", "hook_response"})


class ClaudeJournal:
    """One method per kind of message."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._run = RunJournal(host)

    def take(self, message: Message) -> None:
        match message:
            case StreamEvent(parent_tool_use_id=None):
                self._stream(message.event)
            case AssistantMessage():
                for block in message.content:
                    self._assistant(block, message.parent_tool_use_id, message.message_id)
            case UserMessage(content=list() as blocks):
                for block in blocks:
                    if isinstance(block, ToolResultBlock):
                        self._returned(block)
            case RateLimitEvent():
                info = message.rate_limit_info
                facts = {"status": info.status, "resets_at": info.resets_at, "utilization": info.utilization}
                self._host.record("limit", **facts, window=info.rate_limit_type)
            case ResultMessage():
                self._result(message)
            case SystemMessage():
                self._system(message)

    def print(self, line: str) -> None:
        self._run.print(line)

    def _stream(self, event: dict[str, Any]) -> None:
        match event:
            case {"type": "content_block_delta", "delta": {"type": "text_delta", "text": str(piece)}}:
                self._run.stream_text(piece)
            case {"type": "message_start"}:
                # An answer that broke off is written again from its start.
                self._run.end_stream()

    def _assistant(self, block: object, parent: str | None, answer: str | None) -> None:
        match block:
            case TextBlock(text=text) if text.strip():
                self._run.record_text(text, parent)
            case ThinkingBlock(thinking=thinking):
                self._run.record_thought(thinking, parent)
            case ToolUseBlock(id=call, name=tool, input=input):
                self._run.record_call(call, tool, input, parent=parent, answer=answer)

    def _returned(self, block: ToolResultBlock) -> None:
        self._run.record_return(block.tool_use_id, _text_of(block.content), failed=bool(block.is_error))

    def _system(self, message: SystemMessage) -> None:
        data = message.data
        match message.subtype:
            case "api_retry":
                status, delay = data.get("error_status"), data.get("retry_delay_ms")
                self._host.record("retry", status=status, error=data.get("error"), delay_ms=delay)
                why = f"{data.get('error')}, {status}" if status else "the connection broke"
                self.print(f"  the model did not answer ({why}); retrying")
            case "permission_denied":
                self._run.record_denial(str(data.get("tool_name")), data.get("tool_use_id"))
            case "model_fallback":
                self._host.record("fallback", **_plain(data))
            case ignored if ignored in _IGNORED:
                return
            case other:
                self._host.record("noted", what=other)

    def _result(self, result: ResultMessage) -> None:
        self._host.record(
            "result",
            subtype=result.subtype,
            error=result.is_error,
            reason=result.terminal_reason,
            text=cut(result.result or "", LONGEST_RESULT),
            status=result.api_error_status,
            turns=result.num_turns,
            cost_usd=result.total_cost_usd,
            usage=_plain(result.usage or {}),
            models=result.model_usage,
            denials=[summary(denial) for denial in result.permission_denials or []],
        )


def _text_of(content: str | list[dict[str, Any]] | None) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", f"[{part.get('type')}]")) for part in content or [])


def _plain(facts: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if isinstance(value, int | float | str)}


# Records the tree once all calls of an answer have returned, before the model's next answer.
#
# The runner does nothing else meanwhile, and no call starts before the runner has read its message: a state holds all
# of these calls and nothing later. Claude Code may start calls while the model still writes its answer; then the tree
# is recorded several times, and the last state counts. Background processes may change the tree at any time.

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


# Judges how a run of Claude Code ended, from its final messages. Its exit code is not reliable and not used. Pure.

_GATEWAY = "legion: "
"""The prefix of the gateway's own messages. A request that the gateway refuses is not the agent's mistake."""
_NO_CREDIT = "credit balance is too low"

_OUTAGES = ("server_error", "unknown")
"""Claude Code's names for an error without a status: no answer, or an invalid one."""


@dataclass(frozen=True, kw_only=True)
class FinalResult:
    """The last `result` event."""

    subtype: str
    is_error: bool
    reason: str
    """Its terminal_reason."""
    text: str
    status: int | None
    """The HTTP status of the API error that ended it."""
    denials: tuple[str, ...] = ()
    """The tools that it was denied, in order."""


@dataclass(frozen=True, kw_only=True)
class SessionFacts:
    """Everything that `judge` uses."""

    final: FinalResult | None
    error: str = ""
    """The kind of API error in its last message."""
    resets_at: float | None = None
    """When the limit that it last hit ends."""
    cause: StopCause = StopCause.NOTHING
    timeout: float | None = None
    exit_code: int | None = None
    stderr: str = ""
    """The end of what it wrote to stderr."""


def judge(facts: SessionFacts) -> Ending:
    if facts.cause is StopCause.STOP:
        return _ending(facts, EndKind.STOPPED, "The run was stopped as asked.")
    if facts.cause is StopCause.TIME:
        limit = "" if facts.timeout is None else f" of {facts.timeout:g} s"
        return _ending(facts, EndKind.TIMED_OUT, f"The agent was ended because its limit{limit} had passed.")
    if facts.cause is StopCause.REFUSAL:
        return _ending(facts, EndKind.REFUSED, NO_KEY)
    if facts.cause is StopCause.OUTAGE:
        return _ending(facts, EndKind.LIMITED, NO_ANSWER)
    final = facts.final
    if final is None and facts.cause is StopCause.INTERRUPT:
        return _ending(facts, EndKind.INTERRUPTED, INTERRUPTED)
    if final is None:
        stderr = readable(facts.stderr)
        more = f": {stderr}" if stderr else ""
        return _ending(
            facts, EndKind.FAILED, f"Claude Code ended without a result (exit code {facts.exit_code}){more}."
        )
    if BUDGET_MARK in final.text or final.subtype == "error_max_budget_usd" or final.reason == "budget_exhausted":
        return _ending(facts, EndKind.OUT_OF_BUDGET, "The agent has spent its budget.")
    if final.reason == "api_error" or (final.is_error and facts.error):
        return _api_error(facts, final)
    if final.subtype == "error_max_turns" or final.reason == "max_turns":
        return _ending(facts, EndKind.FAILED, "The agent used up its turns.")
    if facts.cause is StopCause.INTERRUPT:
        return _ending(facts, EndKind.INTERRUPTED, INTERRUPTED)
    if final.is_error or final.subtype != "success":
        return _ending(facts, EndKind.FAILED, short(final.text) or f"Claude Code ended with {final.subtype}.")
    stuck = stuck_reason(final.text)
    if stuck:
        return _ending(facts, EndKind.GAVE_UP, stuck)
    return _ending(facts, EndKind.FINISHED, finished(final.denials))


def _api_error(facts: SessionFacts, final: FinalResult) -> Ending:
    text = short(final.text)
    if (final.status in (400, 403) and _GATEWAY in final.text) or _NO_CREDIT in final.text.lower():
        return _ending(facts, EndKind.REFUSED, text)
    if final.status in (429, 529) or facts.error in ("rate_limit", "overloaded"):
        return _ending(facts, EndKind.LIMITED, text, until=facts.resets_at)
    if final.status in (401, 403) or facts.error == "authentication_failed":
        return _ending(facts, EndKind.REFUSED, NO_KEY)
    if final.status == 404 or facts.error in ("billing_error", "model_not_found"):
        return _ending(facts, EndKind.REFUSED, text)
    if (final.status or 0) >= 500 or (final.status is None and facts.error in _OUTAGES):
        return _ending(facts, EndKind.LIMITED, text)
    return _ending(facts, EndKind.FAILED, text)


def _ending(facts: SessionFacts, outcome: EndKind, message: str, until: float | None = None) -> Ending:
    denied = tuple(dict.fromkeys(facts.final.denials)) if facts.final is not None else ()
    return Ending(outcome=outcome, exit_code=facts.exit_code, message=message, until=until, denied=denied)
