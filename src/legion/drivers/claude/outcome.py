"""Judges how a run of Claude Code ended, from its final messages. Its exit code is not reliable and not used. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from legion.drivers import Ending, EndKind

BUDGET_MARK = "legion: budget reached"
"""Part of the gateway's answer when a ticket has spent its budget."""
_GATEWAY = "legion: "
"""The prefix of the gateway's own messages. A request that the gateway refuses is not the agent's mistake."""
_NO_CREDIT = "credit balance is too low"

_STUCK = re.compile(r"^\W*STUCK\W*:\s*(.+)", re.MULTILINE | re.DOTALL)
_LONGEST = 1000
_LONGEST_STDERR = 300
_INTERRUPTED = "The agent was interrupted."
_NO_KEY = "The provider refused its key: see `legion provider test`."
_NO_ANSWER = "The provider has not answered for minutes: see `legion provider test`."
_OUTAGES = ("server_error", "unknown")
"""Claude Code's names for an error without a status: no answer, or an invalid one."""


class StopCause(Enum):
    """Why we ended it, which explains an end that would otherwise count as a failure."""

    NOTHING = "nothing"
    STOP = "stop"
    TIME = "time"
    INTERRUPT = "interrupt"
    REFUSAL = "refusal"
    """The provider refuses its key, and Claude Code would retry for minutes."""
    OUTAGE = "outage"
    """The provider does not answer, and Claude Code would retry for an hour."""


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
        return _ending(facts, EndKind.REFUSED, _NO_KEY)
    if facts.cause is StopCause.OUTAGE:
        return _ending(facts, EndKind.LIMITED, _NO_ANSWER)
    final = facts.final
    if final is None and facts.cause is StopCause.INTERRUPT:
        return _ending(facts, EndKind.INTERRUPTED, _INTERRUPTED)
    if final is None:
        stderr = _readable(facts.stderr)
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
        return _ending(facts, EndKind.INTERRUPTED, _INTERRUPTED)
    if final.is_error or final.subtype != "success":
        return _ending(facts, EndKind.FAILED, _short(final.text) or f"Claude Code ended with {final.subtype}.")
    stuck = _STUCK.search(final.text)
    if stuck:
        return _ending(facts, EndKind.GAVE_UP, _short(stuck[1]))
    return _ending(facts, EndKind.FINISHED, _finished(final.denials))


def _api_error(facts: SessionFacts, final: FinalResult) -> Ending:
    text = _short(final.text)
    if (final.status in (400, 403) and _GATEWAY in final.text) or _NO_CREDIT in final.text.lower():
        return _ending(facts, EndKind.REFUSED, text)
    if final.status in (429, 529) or facts.error in ("rate_limit", "overloaded"):
        return _ending(facts, EndKind.LIMITED, text, until=facts.resets_at)
    if final.status in (401, 403) or facts.error == "authentication_failed":
        return _ending(facts, EndKind.REFUSED, _NO_KEY)
    if final.status == 404 or facts.error in ("billing_error", "model_not_found"):
        return _ending(facts, EndKind.REFUSED, text)
    if (final.status or 0) >= 500 or (final.status is None and facts.error in _OUTAGES):
        return _ending(facts, EndKind.LIMITED, text)
    return _ending(facts, EndKind.FAILED, text)


def _ending(facts: SessionFacts, outcome: EndKind, message: str, until: float | None = None) -> Ending:
    denied = tuple(dict.fromkeys(facts.final.denials)) if facts.final is not None else ()
    return Ending(outcome=outcome, exit_code=facts.exit_code, message=message, until=until, denied=denied)


def _finished(denials: Sequence[str]) -> str:
    if not denials:
        return "The agent reports that it is done."
    return f"The agent reports that it is done; it was denied {', '.join(dict.fromkeys(denials))}."


def _readable(stderr: str) -> str:
    """The end of it, in one line, without lines that are not text."""
    lines = (" ".join(line.split()).rstrip(".") for line in stderr.splitlines())
    text = "; ".join(line for line in lines if line and line.isprintable() and "\N{REPLACEMENT CHARACTER}" not in line)
    return text if len(text) <= _LONGEST_STDERR else f"...{text[-_LONGEST_STDERR:]}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."
