"""One fact that happened, never changed.

Numbered without gaps in the order of commits, so a reader can resume from the last it saw.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class Kind(Enum):
    PROJECT_ADDED = "project.added"
    PROJECT_REMOVED = "project.removed"
    PROJECT_TRUSTED = "project.trusted"
    PROJECT_PAUSED = "project.paused"
    PROJECT_RESUMED = "project.resumed"
    TICKET_CREATED = "ticket.created"
    TICKET_MOVED = "ticket.moved"
    TICKET_DROPPED = "ticket.dropped"
    RUN_STARTED = "run.started"
    RUN_ENDED = "run.ended"
    QUESTION_ASKED = "question.asked"
    QUESTION_SETTLED = "question.settled"
    RECEIPT = "check.receipt"
    REVERSED = "proof.reversed"
    """A change was tried without itself and without each of its hunks."""
    BASELINE_RED = "target.red"
    """The target itself fails a check; no ticket is blamed for it."""
    BASELINE_GREEN = "target.green"
    TARGET_MOVED = "target.moved"
    """The target is at a commit that passed its checks."""
    LANDED = "landing.landed"
    """A ticket's change is in the target."""
    SENT_BACK = "landing.sent-back"
    """A conflict or a red check: the ticket's next attempt."""
    PERSON_SEEN = "person.seen"
    """The person's branch has a new tip."""
    ABSORBED = "person.absorbed"
    """The person's own commits are part of the target now."""
    NOT_ABSORBED = "person.not-absorbed"
    COLLECTED = "person.collected"
    WARNING = "warning"
    """Something a person should know that belongs to no ticket."""


@dataclass(frozen=True, kw_only=True)
class Event:
    n: int
    at: float
    kind: Kind
    project: int | None = None
    ticket: int | None = None
    data: Mapping[str, object] = field(default_factory=dict)
