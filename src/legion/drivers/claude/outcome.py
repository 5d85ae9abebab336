"""How a run of Claude Code ended, from what it said. Its exit code lies, so it counts for nothing here. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from legion.drivers import Ending, EndKind

BUDGET_MARK = "legion: budget reached"
"""How the gateway says that a ticket has spent what it was given."""
_GATEWAY = "legion: "
"""How every sentence of the gateway's own begins. What it refuses is never the agent's mistake."""
_NO_CREDIT = "credit balance is too low"

_STUCK = re.compile(r"^\W*STUCK\W*:\s*(.+)", re.MULTILINE | re.DOTALL)
_LONGEST = 1000
_LONGEST_COMPLAINT = 300
_INTERRUPTED = "The agent was interrupted."
_NO_KEY = "The provider refused its key: see `legion provider test`."
_NO_ANSWER = "The provider has not answered for minutes: see `legion provider test`."
_OUTAGES = ("server_error", "unknown")
"""What Claude Code calls an error that came without a status: nobody answered, or with nonsense."""


class StopCause(Enum):
    """What we asked of it, which explains an end that would be strange otherwise."""

    NOTHING = "nothing"
    STOP = "stop"
    TIME = "time"
    INTERRUPT = "interrupt"
    REFUSAL = "refusal"
    """The provider refuses its key, and Claude Code would go on asking for minutes."""
    OUTAGE = "outage"
    """The provider answers nothing, and Claude Code would go on asking for an hour."""


@dataclass(frozen=True, kw_only=True)
class FinalResult:
    """Its last word: one `result` event."""

    subtype: str
    is_error: bool
    reason: str
    """What it calls terminal_reason."""
    text: str
    status: int | None
    """The HTTP status of the API error that ended it."""
    denials: tuple[str, ...] = ()
    """The tools that it was denied, in order."""


@dataclass(frozen=True, kw_only=True)
class SessionFacts:
    """Everything that counts for the verdict."""

    final: FinalResult | None
    error: str = ""
    """The kind of API error that its last message names."""
    resets_at: float | None = None
    """When the limit that it last ran into ends."""
    asked: StopCause = StopCause.NOTHING
    timeout: float | None = None
    exit_code: int | None = None
    complaint: str = ""
    """The end of what it wrote to stderr."""


def judge(heard: SessionFacts) -> Ending:
    if heard.asked is StopCause.STOP:
        return _ending(heard, EndKind.STOPPED, "The run was stopped as asked.")
    if heard.asked is StopCause.TIME:
        limit = "" if heard.timeout is None else f" of {heard.timeout:g} s"
        return _ending(heard, EndKind.TIMED_OUT, f"The agent was ended because its limit{limit} had passed.")
    if heard.asked is StopCause.REFUSAL:
        return _ending(heard, EndKind.REFUSED, _NO_KEY)
    if heard.asked is StopCause.OUTAGE:
        return _ending(heard, EndKind.LIMITED, _NO_ANSWER)
    final = heard.final
    if final is None and heard.asked is StopCause.INTERRUPT:
        return _ending(heard, EndKind.INTERRUPTED, _INTERRUPTED)
    if final is None:
        complaint = _readable(heard.complaint)
        words = f": {complaint}" if complaint else ""
        return _ending(
            heard, EndKind.FAILED, f"Claude Code ended without a last word (exit code {heard.exit_code}){words}."
        )
    if BUDGET_MARK in final.text or final.subtype == "error_max_budget_usd" or final.reason == "budget_exhausted":
        return _ending(heard, EndKind.OUT_OF_BUDGET, "The agent has spent its budget.")
    if final.reason == "api_error" or (final.is_error and heard.error):
        return _api_error(heard, final)
    if final.subtype == "error_max_turns" or final.reason == "max_turns":
        return _ending(heard, EndKind.FAILED, "The agent used up its turns.")
    if heard.asked is StopCause.INTERRUPT:
        return _ending(heard, EndKind.INTERRUPTED, _INTERRUPTED)
    if final.is_error or final.subtype != "success":
        return _ending(heard, EndKind.FAILED, _short(final.text) or f"Claude Code ended with {final.subtype}.")
    stuck = _STUCK.search(final.text)
    if stuck:
        return _ending(heard, EndKind.GAVE_UP, _short(stuck[1]))
    return _ending(heard, EndKind.FINISHED, _finished(final.denials))


def _api_error(heard: SessionFacts, final: FinalResult) -> Ending:
    text = _short(final.text)
    if (final.status in (400, 403) and _GATEWAY in final.text) or _NO_CREDIT in final.text.lower():
        return _ending(heard, EndKind.REFUSED, text)
    if final.status in (429, 529) or heard.error in ("rate_limit", "overloaded"):
        return _ending(heard, EndKind.LIMITED, text, until=heard.resets_at)
    if final.status in (401, 403) or heard.error == "authentication_failed":
        return _ending(heard, EndKind.REFUSED, _NO_KEY)
    if final.status == 404 or heard.error in ("billing_error", "model_not_found"):
        return _ending(heard, EndKind.REFUSED, text)
    if (final.status or 0) >= 500 or (final.status is None and heard.error in _OUTAGES):
        return _ending(heard, EndKind.LIMITED, text)
    return _ending(heard, EndKind.FAILED, text)


def _ending(heard: SessionFacts, outcome: EndKind, message: str, until: float | None = None) -> Ending:
    denied = tuple(dict.fromkeys(heard.final.denials)) if heard.final is not None else ()
    return Ending(outcome=outcome, exit_code=heard.exit_code, message=message, until=until, denied=denied)


def _finished(denials: Sequence[str]) -> str:
    if not denials:
        return "The agent says that it is through."
    return f"The agent says that it is through; it was denied {', '.join(dict.fromkeys(denials))}."


def _readable(complaint: str) -> str:
    """The end of it, in one line; what is no text tells a person nothing."""
    lines = (" ".join(line.split()).rstrip(".") for line in complaint.splitlines())
    words = "; ".join(line for line in lines if line and line.isprintable() and "\N{REPLACEMENT CHARACTER}" not in line)
    return words if len(words) <= _LONGEST_COMPLAINT else f"...{words[-_LONGEST_COMPLAINT:]}"


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}..."
