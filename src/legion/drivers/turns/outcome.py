"""Judges how a run of turns ended: from our own cause, the program's last turn, and the gateway's last answer. Pure.

Programs report errors of their provider in many ways: as an error, as an ordinary message, or not at all. The gateway
knows the status of the last request, so its word comes first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from legion.drivers import Ending, EndKind

BUDGET_MARK = "legion: budget reached"
"""Part of the gateway's answer when a ticket has spent its budget."""
_BUDGET_ERROR = "budget_reached"
_STUCK = re.compile(r"^\W*STUCK\W*:\s*(.+)", re.MULTILINE | re.DOTALL)
_LONGEST = 1000
_LONGEST_STDERR = 300
INTERRUPTED = "The agent was interrupted."
NO_KEY = "The provider refused its key: see `legion provider test`."
NO_ANSWER = "The provider has not answered for minutes: see `legion provider test`."
ENDED_WELL = ("end_turn", "completed")
_LIMITS = (429, 503, 529)
_REFUSALS = (401, 402, 403, 404)


class StopCause(Enum):
    """Why we ended it, which explains an end that would otherwise count as a failure."""

    NOTHING = "nothing"
    STOP = "stop"
    TIME = "time"
    INTERRUPT = "interrupt"
    REFUSAL = "refusal"
    """The provider refuses its key, and the program would retry for minutes."""
    OUTAGE = "outage"
    """The provider does not answer, and the program would retry for an hour."""
    UNRESPONSIVE = "unresponsive"
    """It did not survive an interrupt, or did not end its turn in time: the person's message waits for the next run."""


@dataclass(frozen=True, kw_only=True)
class GatewayAnswer:
    """How the gateway answered the run's last request."""

    status: int
    error: str
    failures: int
    """Failed requests since the last one that was served."""
    failing_for: float
    """Seconds since the first of them."""
    open: int
    """Requests that are not answered yet."""

    @property
    def is_failure(self) -> bool:
        return self.failures > 0

    @property
    def is_final(self) -> bool:
        """A repetition of the request would get the same answer."""
        return self.is_failure and 400 <= self.status < 500 and self.status not in (408, *_LIMITS)


@dataclass(frozen=True, kw_only=True)
class TurnsFacts:
    """Everything that `judge` uses."""

    title: str
    """The program's name."""
    reason: str = ""
    """Why its last turn ended, as the program names it; empty: no turn came to its end."""
    text: str = ""
    """Its last message."""
    error: str = ""
    """The error that it reported instead."""
    gateway: GatewayAnswer | None = None
    limit_signs: Sequence[str] = ()
    refusal_signs: Sequence[str] = ()
    cause: StopCause = StopCause.NOTHING
    timeout: float | None = None
    exit_code: int | None = None
    stderr: str = ""
    denied: Sequence[str] = ()


def judge(facts: TurnsFacts) -> Ending:
    if facts.cause is StopCause.STOP:
        return _ending(facts, EndKind.STOPPED, "The run was stopped as asked.")
    if facts.cause is StopCause.TIME:
        limit = "" if facts.timeout is None else f" of {facts.timeout:g} s"
        return _ending(facts, EndKind.TIMED_OUT, f"The agent was ended because its limit{limit} had passed.")
    if facts.cause is StopCause.INTERRUPT:
        return _ending(facts, EndKind.INTERRUPTED, INTERRUPTED)
    if facts.cause is StopCause.UNRESPONSIVE:
        return _ending(facts, EndKind.STOPPED, facts.error or f"{facts.title} ended when it was interrupted.")
    by_provider = _judge_provider(facts)
    if by_provider is not None:
        return by_provider
    if facts.error:
        return _ending(facts, EndKind.FAILED, short(facts.error))
    if not facts.reason:
        stderr = readable(facts.stderr)
        more = f": {stderr}" if stderr else ""
        message = f"{facts.title} ended without a result (exit code {facts.exit_code}){more}."
        return _ending(facts, EndKind.FAILED, message)
    if facts.reason not in ENDED_WELL:
        return _ending(facts, EndKind.FAILED, f"{facts.title} ended its turn with {facts.reason}.")
    stuck = stuck_reason(facts.text)
    if stuck:
        return _ending(facts, EndKind.GAVE_UP, stuck)
    return _ending(facts, EndKind.FINISHED, finished(facts.denied))


def _judge_provider(facts: TurnsFacts) -> Ending | None:
    """Where the provider, its limit or the budget ended the run; None where it did not."""
    said = f"{facts.error}\n{facts.text}".lower()
    gateway, text = facts.gateway, short(facts.error or facts.text)
    if BUDGET_MARK in said or (gateway is not None and gateway.is_failure and gateway.error == _BUDGET_ERROR):
        return _ending(facts, EndKind.OUT_OF_BUDGET, "The agent has spent its budget.")
    if gateway is not None and gateway.is_failure and not _is_side_request(facts, gateway):
        status = gateway.status
        if status in _REFUSALS:
            return _ending(facts, EndKind.REFUSED, NO_KEY if status == 401 else text or f"The provider said {status}.")
        if status in _LIMITS or status >= 500 or status == 0:
            return _ending(facts, EndKind.LIMITED, text or f"The provider answered with {status}.")
        return _ending(facts, EndKind.FAILED, text or f"The provider answered with {status} ({gateway.error}).")
    if _ended_well(facts):
        return None
    if facts.cause is StopCause.REFUSAL:
        return _ending(facts, EndKind.REFUSED, NO_KEY)
    if facts.cause is StopCause.OUTAGE:
        return _ending(facts, EndKind.LIMITED, NO_ANSWER)
    if gateway is None and facts.error:
        if any(sign in said for sign in facts.limit_signs):
            return _ending(facts, EndKind.LIMITED, text)
        if any(sign in said for sign in facts.refusal_signs):
            return _ending(facts, EndKind.REFUSED, text)
    return None


def _is_side_request(facts: TurnsFacts, gateway: GatewayAnswer) -> bool:
    """Programs make requests besides the conversation, such as for a title; after a good turn those may fail."""
    return _ended_well(facts) and gateway.is_final and gateway.status not in (401, 403)


def _ended_well(facts: TurnsFacts) -> bool:
    """Also where its requests failed for so long that it was cancelled: its answer was on its way by then."""
    return facts.reason in ENDED_WELL and not facts.error


def _ending(facts: TurnsFacts, outcome: EndKind, message: str) -> Ending:
    denied = tuple(dict.fromkeys(facts.denied))
    return Ending(outcome=outcome, exit_code=facts.exit_code, message=message, denied=denied)


def stuck_reason(text: str) -> str:
    """The reason of an agent that reports that it cannot do this; empty otherwise."""
    stuck = _STUCK.search(text)
    return short(stuck[1]) if stuck else ""


def finished(denials: Sequence[str]) -> str:
    if not denials:
        return "The agent reports that it is done."
    return f"The agent reports that it is done; it was denied {', '.join(dict.fromkeys(denials))}."


def readable(stderr: str) -> str:
    """The end of it, in one line, without lines that are not text."""
    lines = (" ".join(line.split()).rstrip(".") for line in stderr.splitlines())
    text = "; ".join(line for line in lines if line and line.isprintable() and "\N{REPLACEMENT CHARACTER}" not in line)
    return text if len(text) <= _LONGEST_STDERR else f"...{text[-_LONGEST_STDERR:]}"


def short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."
