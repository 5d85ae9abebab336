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
    PROJECT_NUMBERS = "project.numbers"
    """The person set how many agents work at once, or how often a ticket is tried."""
    TICKET_CREATED = "ticket.created"
    TICKET_MOVED = "ticket.moved"
    TICKET_DROPPED = "ticket.dropped"
    TICKET_EDITED = "ticket.edited"
    """A person changed some of its fields."""
    TICKET_REPORTED = "ticket.reported"
    """The agent's report about its ticket. Only a claim."""
    TICKET_ADVISED = "ticket.advised"
    TICKET_TRIED = "ticket.tried"
    """A person tried its change by hand, with this result."""
    TICKET_PROGRAM_CHOSEN = "ticket.program_chosen"
    """Its program and model were chosen by what landed before."""
    RUN_STARTED = "run.started"
    RUN_ENDED = "run.ended"
    RACE_STARTED = "race.started"
    RACE_DECIDED = "race.decided"
    """The winner of a race lands; the other lanes are kept for a look."""
    REWOUND = "ticket.rewound"
    """Tree and conversation go back to an earlier moment."""
    TICKET_ADOPTED = "ticket.adopted"
    """It continues a conversation of the person's."""
    TICKET_FORKED = "ticket.forked"
    """Its conversation starts as a copy of that of another run, which has read the repository."""
    AGENT_HIRED = "agent.hired"
    AGENT_FIRED = "agent.fired"
    AGENT_ADOPTED = "agent.adopted"
    """Its parent was fired: it now reports to the agent above."""
    AGENT_DELEGATES = "agent.delegates"
    """From its next turn on it only leads, or uses the tools of its program again."""
    PLAN_APPROVED = "plan.approved"
    PLAN_REJECTED = "plan.rejected"
    PLAN_CREATED = "plan.created"
    """A goal is to be planned, or a template was expanded."""
    PLAN_MOVED = "plan.moved"
    NOTE_ADDED = "note.added"
    NOTE_CLOSED = "note.closed"
    LESSON_PROPOSED = "lesson.proposed"
    """An attempt failed and a later one passed: the difference, as Legion sees it."""
    LESSON_ACCEPTED = "lesson.accepted"
    ROUTINE_ADDED = "routine.added"
    ROUTINE_REMOVED = "routine.removed"
    ROUTINE_RAN = "routine.ran"
    AGENT_INTERRUPTED = "agent.interrupted"
    MAIL_SENT = "mail.sent"
    MAIL_DELIVERED = "mail.delivered"
    MAIL_RETURNED = "mail.returned"
    """Its recipient was fired before delivery."""
    QUESTION_ASKED = "question.asked"
    QUESTION_SETTLED = "question.settled"
    RECEIPT = "check.receipt"
    FLAKY = "check.flaky"
    """A check failed and then passed on the same tree; no ticket is blamed."""
    EMPTIED = "check.emptied"
    """Of earlier releases: the checks ran on the target with every source file empty."""
    TRIED = "check.tried"
    """The checks ran on the target as it is and with errors planted in its code: which of them noticed."""
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
    QUEUE_TEST = "landing.test"
    """The merge queue starts checks on these changes: a batch, a part of it, the next ones, or a blamed one alone."""
    BATCH_SIZE = "landing.batch-size"
    """The merge queue changed the size of its batches."""
    SENT_BACK = "landing.sent-back"
    """A conflict or a failed check: the ticket gets its next attempt."""
    AT_GATE = "landing.gate"
    """The change passed everything and waits for the person."""
    LEFT_BEHIND = "landing.left-behind"
    """The target followed the person's branch back behind a landed ticket: its change is no longer there."""
    BROUGHT_BACK = "landing.brought-back"
    """A change that the target had dropped is in it again."""
    CONFLICT_PREDICTED = "conflict.predicted"
    """Two open changes touch the same lines, or one touches lines that landed since."""
    CONFLICT_GONE = "conflict.gone"
    """A prediction no longer holds."""
    THROTTLE_CHANGED = "throttle.changed"
    """New runs are throttled, held or released because of a provider's limit."""
    WATCHDOG_STEP = "watchdog.step"
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
    MACHINE_JOINED = "machine.joined"
    MACHINE_STATE = "machine.state"
    """A person paused, resumed, drained or removed it; its disk got full, or has room again."""
    REBUILT = "board.rebuilt"
    """The database was lost; this project's board was restored from its hub."""
    WARNING = "warning"
    """A warning for the person that belongs to no ticket."""


RENAMED = {
    "pace.changed": "throttle.changed",
    "pace": "throttle",
    "mail.heard": "mail.delivered",
    "liveness.step": "watchdog.step",
    "liveness": "watchdog",
}
"""Kinds, and parts before a dot, as earlier releases named them."""


@dataclass(frozen=True, kw_only=True)
class Event:
    n: int
    at: float
    kind: EventKind
    project: int | None = None
    ticket: int | None = None
    data: Mapping[str, object] = field(default_factory=dict)
