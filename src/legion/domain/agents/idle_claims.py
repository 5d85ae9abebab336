"""Decides what follows when a standing agent holds a ticket and does nothing: reminders first, then a question.

Pure: the caller measures the time, sends the mail and asks the person.
"""

from __future__ import annotations

from enum import Enum

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
