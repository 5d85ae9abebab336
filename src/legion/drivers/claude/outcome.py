"""Judges how a run of Claude Code ended, from its final messages. Its exit code is not reliable and not used. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from legion.drivers import Ending, EndKind
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
