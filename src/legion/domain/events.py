"""One fact that happened, never changed.

Numbered without gaps in the order of commits, so a reader can resume from the last it saw.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class EventKind(Enum):
    PROJECT_ADDED = "project.added"
    PROJECT_REMOVED = "project.removed"
    PROJECT_TRUSTED = "project.trusted"
    PROJECT_PAUSED = "project.paused"
    PROJECT_RESUMED = "project.resumed"
    TICKET_CREATED = "ticket.created"
    TICKET_MOVED = "ticket.moved"
    TICKET_DROPPED = "ticket.dropped"
    TICKET_REPORTED = "ticket.reported"
    """What its agent says about it. Only a claim."""
    TICKET_ADVISED = "ticket.advised"
    RUN_STARTED = "run.started"
    RUN_ENDED = "run.ended"
    REWOUND = "ticket.rewound"
    """Its tree and its conversation go back to an earlier moment."""
    AGENT_HIRED = "agent.hired"
    AGENT_FIRED = "agent.fired"
    AGENT_ADOPTED = "agent.adopted"
    """Its parent was fired: it reports to the one above."""
    PLAN_APPROVED = "plan.approved"
    PLAN_REJECTED = "plan.rejected"
    AGENT_INTERRUPTED = "agent.interrupted"
    MAIL_SENT = "mail.sent"
    MAIL_HEARD = "mail.heard"
    MAIL_RETURNED = "mail.returned"
    """Its recipient was fired before it was heard."""
    QUESTION_ASKED = "question.asked"
    QUESTION_SETTLED = "question.settled"
    RECEIPT = "check.receipt"
    FLAKY = "check.flaky"
    """A check was red and then green on the very same tree; nobody is blamed for it."""
    REVERSED = "proof.reversed"
    """A change was tried without itself and without each of its hunks."""
    REVIEW_ASKED = "review.asked"
    """Somebody is to read a change."""
    REVIEW_GIVEN = "review.given"
    """A reader's verdict, or that none came which could be used."""
    BASELINE_RED = "target.red"
    """The target itself fails a check; no ticket is blamed for it."""
    BASELINE_GREEN = "target.green"
    TARGET_MOVED = "target.moved"
    """The target is at a commit that passed its checks."""
    LANDED = "landing.landed"
    """A ticket's change is in the target."""
    BATCH = "landing.batch"
    """Of several changes that wait, these are tried together, in this order."""
    BATCH_SIZE = "landing.batch-size"
    """From now on fewer or more changes are tried together."""
    SENT_BACK = "landing.sent-back"
    """A conflict or a red check: the ticket's next attempt."""
    LEFT_BEHIND = "landing.left-behind"
    """The target followed the person back behind a ticket that had landed: nothing of it is there any more."""
    BROUGHT_BACK = "landing.brought-back"
    """What the target had left behind is in it again."""
    CLASH_SEEN = "conflict.predicted"
    """Two changes in work touch the same lines, or one touches lines that have landed since."""
    CLASH_GONE = "conflict.gone"
    """What was predicted does not hold any more."""
    PACE = "pace.changed"
    """Work slows down, holds or goes on because of a provider's limit."""
    HELPED = "liveness.step"
    """A run did not get on, and something was done about it: what, why, and by which rule."""
    PERSON_SEEN = "person.seen"
    """The person's branch has a new tip."""
    ABSORBED = "person.absorbed"
    """The person's own commits are part of the target now."""
    NOT_ABSORBED = "person.not-absorbed"
    COLLECTED = "person.collected"
    REFUSED = "agent.refused"
    """An agent asked for what it may not do, or under another's name."""
    REBUILT = "board.rebuilt"
    """The database was lost; this project's board was brought back from its hub."""
    WARNING = "warning"
    """Something a person should know that belongs to no ticket."""


@dataclass(frozen=True, kw_only=True)
class Event:
    n: int
    at: float
    kind: EventKind
    project: int | None = None
    ticket: int | None = None
    data: Mapping[str, object] = field(default_factory=dict)
