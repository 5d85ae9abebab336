"""Events: facts that happened and never change.

Numbered without gaps in commit order, so a reader can resume from the last number it saw.
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
    """The agent's report about its ticket. Only a claim."""
    TICKET_ADVISED = "ticket.advised"
    TICKET_TRIED = "ticket.tried"
    """A person tried its change by hand, with this result."""
    RUN_STARTED = "run.started"
    RUN_ENDED = "run.ended"
    REWOUND = "ticket.rewound"
    """Tree and conversation go back to an earlier moment."""
    AGENT_HIRED = "agent.hired"
    AGENT_FIRED = "agent.fired"
    AGENT_ADOPTED = "agent.adopted"
    """Its parent was fired: it now reports to the agent above."""
    PLAN_APPROVED = "plan.approved"
    PLAN_REJECTED = "plan.rejected"
    PLAN_CREATED = "plan.created"
    """A goal is to be planned, or a template was expanded."""
    PLAN_MOVED = "plan.moved"
    AGENT_INTERRUPTED = "agent.interrupted"
    MAIL_SENT = "mail.sent"
    MAIL_HEARD = "mail.heard"
    MAIL_RETURNED = "mail.returned"
    """Its recipient was fired before delivery."""
    QUESTION_ASKED = "question.asked"
    QUESTION_SETTLED = "question.settled"
    RECEIPT = "check.receipt"
    FLAKY = "check.flaky"
    """A check failed and then passed on the same tree; no ticket is blamed."""
    EMPTIED = "check.emptied"
    """The checks ran on the target with every source file empty: which of them noticed."""
    REVERSED = "proof.reversed"
    """The checks ran on the change without itself and without each of its hunks."""
    REVIEW_ASKED = "review.asked"
    """A review was requested."""
    REVIEW_GIVEN = "review.given"
    """A reviewer's verdict, or the fact that no usable one came."""
    BASELINE_RED = "target.red"
    """The target itself fails a check; no ticket is blamed."""
    BASELINE_GREEN = "target.green"
    TARGET_MOVED = "target.moved"
    """The target is at a commit that passed its checks."""
    LANDED = "landing.landed"
    """The target contains a ticket's change."""
    BATCH = "landing.batch"
    """The merge queue tests these changes together, in this order."""
    BATCH_SIZE = "landing.batch-size"
    """The merge queue changed the size of its batches."""
    SENT_BACK = "landing.sent-back"
    """A conflict or a failed check: the ticket gets its next attempt."""
    LEFT_BEHIND = "landing.left-behind"
    """The target followed the person's branch back behind a landed ticket: its change is no longer there."""
    BROUGHT_BACK = "landing.brought-back"
    """A change that the target had dropped is in it again."""
    CLASH_SEEN = "conflict.predicted"
    """Two open changes touch the same lines, or one touches lines that landed since."""
    CLASH_GONE = "conflict.gone"
    """A prediction no longer holds."""
    PACE = "pace.changed"
    """New runs are throttled, held or released because of a provider's limit."""
    HELPED = "liveness.step"
    """The watchdog intervened in a run: how, why, and by which rule."""
    PERSON_SEEN = "person.seen"
    """The person's branch has a new tip."""
    ABSORBED = "person.absorbed"
    """The target now contains the person's own commits."""
    NOT_ABSORBED = "person.not-absorbed"
    COLLECTED = "person.collected"
    REFUSED = "agent.refused"
    """An agent called an operation that it may not use, or in another agent's name."""
    DEVICE_ADDED = "device.added"
    """A browser was let in to the page."""
    DEVICE_REVOKED = "device.revoked"
    REBUILT = "board.rebuilt"
    """The database was lost; this project's board was restored from its hub."""
    WARNING = "warning"
    """A warning for the person that belongs to no ticket."""


@dataclass(frozen=True, kw_only=True)
class Event:
    n: int
    at: float
    kind: EventKind
    project: int | None = None
    ticket: int | None = None
    data: Mapping[str, object] = field(default_factory=dict)
