"""Decides what follows when a turn of a standing agent has ended, and when an agent holds a ticket and does nothing.

Pure: the caller computes moments, sends mail and stores the result.

Pure: the caller measures the time, sends the mail and asks the person.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from legion.domain.runs import MOST_GENERATIONS, Outcome

RESUMED_OUTCOMES = frozenset({Outcome.LOST, Outcome.LIMITED, Outcome.REFUSED})
"""Ends that no one decided on: the turn resumes by itself when it can."""
_FIRST_PAUSE, _LONGEST_PAUSE = 5.0, 600.0
"""Seconds before the next turn where the last one did not start: twice as long each time."""
_REPORT_AFTER = 3
"""Failed starts in a row after which the parent is informed, once."""


class ResumeAt(Enum):
    """When a turn that was cut off resumes."""

    NOW = "now"
    LIMIT_RESET = "limit-reset"
    PROVIDER_FIXED = "provider-fixed"
    """A person has to fix the key; until then the provider is tried again now and then."""


@dataclass(frozen=True)
class ResumeTurn:
    """The agent continues the same turn; its parent learns nothing of the interruption."""

    at: ResumeAt


@dataclass(frozen=True)
class RetryTurn:
    """The prompt never reached the model: its mail waits for another turn after a pause."""

    pause: float
    report: bool
    """Whether the parent is informed that the agent cannot start."""


@dataclass(frozen=True)
class EndTurn:
    """The turn is over and the agent idles until it has mail."""

    report: bool
    """Whether the parent gets the agent's final message. Not where a person interrupted it."""
    completed: bool
    """Whether the agent reached the end of its turn."""
    ask_budget: bool
    """Whether the person is asked for more money."""


AfterTurn = ResumeTurn | RetryTurn | EndTurn

_RESUME_AT = {
    Outcome.LOST: ResumeAt.NOW,
    Outcome.LIMITED: ResumeAt.LIMIT_RESET,
    Outcome.REFUSED: ResumeAt.PROVIDER_FIXED,
}


def after_turn(outcome: Outcome, *, started: bool, generation: int, failed_starts: int) -> AfterTurn:
    """`started`: the prompt reached the model. `failed_starts`: turns in a row, this one included, without an end."""
    lost_too_often = outcome is Outcome.LOST and generation >= MOST_GENERATIONS
    if outcome in RESUMED_OUTCOMES and not lost_too_often:
        return ResumeTurn(_RESUME_AT[outcome])
    if not started and outcome not in (Outcome.FINISHED, Outcome.INTERRUPTED):
        # At once it would fail as this one did.
        pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (failed_starts - 1))
        return RetryTurn(pause=pause, report=failed_starts == _REPORT_AFTER)
    return EndTurn(
        report=outcome is not Outcome.INTERRUPTED,
        completed=outcome is Outcome.FINISHED,
        ask_budget=outcome is Outcome.OUT_OF_BUDGET,
    )


PATIENCE = 600.0
"""Seconds of idleness after which the next step follows."""
MOST_REMINDERS = 2
REMINDER = "You hold ticket"
"""The start of every reminder: by it they are counted."""


class IdleStep(Enum):
    WAIT = "wait"
    REMIND = "remind"
    ASK = "ask"
    """The person decides whether another agent may have the ticket."""


def idle_step(*, idle_for: float, reminders: int, waits: bool) -> IdleStep:
    """`reminders`: how many the agent got since its claim. `waits`: for mail, a plan, a limit or a person."""
    if waits or idle_for < PATIENCE:
        return IdleStep.WAIT
    return IdleStep.REMIND if reminders < MOST_REMINDERS else IdleStep.ASK


def reminder(ticket: int, title: str) -> str:
    return (
        f"{REMINDER} {ticket} ({title}), and have done nothing about it for a while; no other agent can work on it "
        "meanwhile. Continue with it and submit it with legion-claim (`submit`), or release it (`let_go`)."
    )


def question(name: str, ticket: int, title: str) -> str:
    return (
        f"{name} holds ticket {ticket} ({title}), does nothing about it, and did not react to {MOST_REMINDERS} "
        "reminders. Shall another agent get the ticket? What it left is kept."
    )
