"""Tells whether an attempt failed because the ticket is too large for one agent."""

from __future__ import annotations

import re

from legion.domain.runs import Outcome
from legion.domain.tickets.ticket import Cause

_TOO_LARGE = re.compile(
    r"(?i)\b(?:too|very) (?:large|big|long|broad)\b|\btoo (?:much|many)\b"
    r"|\bcontext (?:window|length|limit)\b|\bsplit (?:it|this|the ticket|up)\b|\bshould be split\b"
)


def cause_of(outcome: Outcome, detail: str) -> Cause:
    """The cause of a run that did not finish: its time was up, its context was full, or its agent said so."""
    if outcome is Outcome.TIMED_OUT:
        return Cause.SIZE
    told = outcome in (Outcome.GAVE_UP, Outcome.FAILED) and _TOO_LARGE.search(detail)
    return Cause.SIZE if told else Cause.ATTEMPT
