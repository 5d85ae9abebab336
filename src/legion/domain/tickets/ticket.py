"""A ticket and its legal moves.

Two rules hold this file together:
1. A ticket changes only through `move`. A step that is not in MOVES raises and changes nothing.
2. A state carries its own evidence: `checking` needs a change, `landing` needs passed proofs, `done` needs the landed
   commit. The step that leads there brings it.

    draft -> queued -> working -> checking -> reviewing -> landing -> done
               ^          |           |           |           |
               +----------+-----------+-----------+-----------+   TryAgain: next attempt, with feedback
    AlreadyThere leads from queued or checking to landing, with an empty change, and Recheck back from there.
    Park and Unpark lead aside and back; Fail and Stop end; Retry brings both ends back to queued.

A checkpoint has no agent: it goes queued -> checking -> done by Inspect and Confirm.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from legion.domain.errors import StateConflict
from legion.domain.tickets.spec import StartPoint, TicketSpec


class State(Enum):
    DRAFT = "draft"
    """Written down, not dispatched yet."""
    QUEUED = "queued"
    """Waits for the tickets it comes after, or for a free slot."""
    WORKING = "working"
    """An agent works on it."""
    CHECKING = "checking"
    """Legion runs its own proofs on its change."""
    REVIEWING = "reviewing"
    """An independent agent reads the change."""
    LANDING = "landing"
    """In the merge queue."""
    DONE = "done"
    """Landed, with receipts (or, for a checkpoint, checked)."""
    PARKED = "parked"
    """Waits for something outside; never a failure."""
    FAILED = "failed"
    """Attempts used up, or impossible."""
    STOPPED = "stopped"
    """A person stopped it."""


ENDED = frozenset({State.DONE, State.FAILED, State.STOPPED})
"""States in which nothing happens by itself."""


class ParkReason(Enum):
    PAUSED = "paused"
    """A person paused it."""
    RED_BASELINE = "red_baseline"
    """The target itself fails the check that this change fails: no ticket is blamed for it."""
    LIMIT = "limit"
    """The model's usage limit; the wake time is known."""
    PROVIDER = "provider"
    """The provider refuses to serve until a person fixes key, model or access."""
    QUESTION = "question"
    BUDGET = "budget"
    NO_MACHINE = "no_machine"
    RESTING = "resting"
    """Its last attempt ended at once and changed nothing; the next one starts a little later."""
    OUTSIDE = "outside"
    """Its change is proven; it lands when it is merged where the project's branch lives."""


class Cause(Enum):
    """Why an attempt failed, for programs; the reason is the sentence for people."""

    CHECKS = "checks"
    """A check or a proof failed."""
    CONFLICT = "conflict"
    """Another change touches the same lines."""
    REVIEW = "review"
    """A reviewer requested changes."""
    SIZE = "size"
    """The ticket is too large: the time was up, the context was full, or the agent said so."""
    ATTEMPT = "attempt"
    """The agent's own work: its program failed, it changed nothing, or it changed what it may not."""


@dataclass(frozen=True, kw_only=True)
class Parked:
    """Why a ticket waits, until when if that is known, and the state it returns to."""

    reason: ParkReason
    detail: str
    back_to: State
    until: float | None = None


@dataclass(frozen=True, kw_only=True)
class Change:
    """What an agent proposes: `commit` holds everything, built on `base`."""

    base: str
    commit: str


@dataclass(frozen=True, kw_only=True)
class Ticket:
    id: int
    project: int
    spec: TicketSpec
    state: State = State.DRAFT
    attempt: int = 0
    """The number of the latest attempt; 0 before the first."""
    interrupted: bool = False
    """The latest attempt was cut off through no fault of the agent; it resumes with the same number."""
    spared: int = 0
    """Attempts that no longer count, because a person asked for a retry after them."""
    skipped: int = 0
    """Attempts that count and were never made (escalation left a rung early), less those that count not (conflicts)."""
    base: str | None = None
    """The commit that its worktree is based on."""
    plant: str | None = None
    """A tree that the worktree gets on `base` before the next attempt: the merge with what landed meanwhile."""
    feedback: str = ""
    """The report about the last attempt for the next one."""
    reason: str = ""
    """One sentence: why it is in this state, where that is not obvious."""
    parked: Parked | None = None
    change: Change | None = None
    landed: str | None = None
    unchecked: bool = False
    """Landed without any check or proof; shown wherever the ticket is."""
    claims: tuple[str, ...] = ()
    """`path::name` of the definitions that its last change touches; or about which it lost a conflict (`lost`)."""
    lost: bool = False
    behind: int | None = None
    """It began on this one's change, and lands after it."""
    retired: str = ""
    """Why its proofs no longer run for later changes."""
    place: int = 0
    """Where a person put it in the merge queue: below 0 in front, above 0 behind."""
    version: int = 0
    created_at: float = 0.0
    moved_at: float = 0.0

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    @property
    def used(self) -> int:
        """Attempts that count for the ladder."""
        return self.attempt - self.spared + self.skipped


@dataclass(frozen=True)
class Submit:
    """The ticket is dispatched."""


@dataclass(frozen=True)
class Start:
    """An attempt starts, or resumes. The first one is based on `target`: the change of `behind`, if it is given."""

    target: str
    behind: int | None = None


@dataclass(frozen=True)
class Inspect:
    """A checkpoint may run its checks."""


@dataclass(frozen=True)
class Propose:
    """The agent left a change that is not empty."""

    change: Change
    claims: tuple[str, ...] = ()


@dataclass(frozen=True)
class Prove:
    """All its own proofs passed and no review is needed. These reviewers may read it; the ticket does not wait for
    them.
    """

    readers: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True)
class AlreadyThere:
    """Another ticket brought its work, as its own proofs show: `change` is empty."""

    change: Change
    reason: str


@dataclass(frozen=True)
class Recheck:
    """It conflicts with what landed meanwhile, where its proofs may be green, or the target has moved on since then."""

    reason: str = "it conflicts with what landed meanwhile: its proofs are tried there"


@dataclass(frozen=True)
class AskReview:
    """All its own proofs passed; independent agents review it next, one after the other."""

    readers: tuple[str, ...] = ()
    """Keys of their stages."""
    why: str = ""


@dataclass(frozen=True)
class Approve:
    """The reviewer found nothing that blocks."""


@dataclass(frozen=True)
class Land:
    """The target contains the change, in `commit`, which passed its checks."""

    commit: str
    unchecked: bool = False


@dataclass(frozen=True)
class Confirm:
    """A checkpoint's checks passed on `commit`."""

    commit: str
    unchecked: bool = False


@dataclass(frozen=True)
class TryAgain:
    """This attempt failed; the next one gets `feedback`, and a new start point where the target moved meanwhile."""

    reason: str
    feedback: str
    ground: StartPoint | None = None
    cause: Cause = Cause.ATTEMPT
    skips: int = 0
    """Attempts that it skips; -1: this attempt does not count."""


@dataclass(frozen=True)
class StartPointUsed:
    """The worktree was moved to its new start point."""


@dataclass(frozen=True)
class Resume:
    """The run was lost or interrupted through no fault of the agent: the same attempt resumes."""

    reason: str


@dataclass(frozen=True)
class Park:
    reason: ParkReason
    detail: str
    until: float | None = None


@dataclass(frozen=True)
class Unpark:
    """The reason to wait is gone."""


@dataclass(frozen=True)
class Fail:
    """The end; a later retry still gets the report about the last attempt."""

    reason: str
    feedback: str = ""
    ground: StartPoint | None = None
    cause: Cause = Cause.ATTEMPT
    why: str = ""
    """Why the last attempt failed, where only more attempts are missing."""
    leaves: bool = False
    """No further attempt in this conversation could help, though some may be left."""
    asks: bool = False
    """No further attempt at all could help before a person has answered, though some may be left."""


@dataclass(frozen=True)
class Stop:
    reason: str = "stopped by a person"


@dataclass(frozen=True)
class Retry:
    """A person wants another attempt, with a fresh count."""

    feedback: str = ""


@dataclass(frozen=True)
class Rewind:
    """A person takes it back to an earlier moment: the next attempt starts at `ground`, with a fresh count."""

    ground: StartPoint
    reason: str
    feedback: str = ""


Step = (
    Submit
    | Start
    | StartPointUsed
    | Inspect
    | Propose
    | Prove
    | AlreadyThere
    | Recheck
    | AskReview
    | Approve
    | Land
    | Confirm
    | TryAgain
    | Resume
    | Park
    | Unpark
    | Fail
    | Stop
    | Retry
    | Rewind
)

_STORED_NAMES: dict[type[Step], str] = {StartPointUsed: "planted"}
"""Steps whose name in stored events differs from their class's."""


def stored_name(step: Step) -> str:
    """The step's name in stored events."""
    return _STORED_NAMES.get(type(step), type(step).__name__.lower())


_S = State
_IN_HAND = (_S.WORKING, _S.CHECKING, _S.REVIEWING, _S.LANDING)

MOVES: dict[tuple[State, type[Step]], State] = {
    (_S.DRAFT, Submit): _S.QUEUED,
    (_S.QUEUED, Start): _S.WORKING,
    (_S.QUEUED, Inspect): _S.CHECKING,
    (_S.WORKING, StartPointUsed): _S.WORKING,
    (_S.WORKING, Propose): _S.CHECKING,
    (_S.CHECKING, Prove): _S.LANDING,
    **{(state, AlreadyThere): _S.LANDING for state in (_S.QUEUED, _S.CHECKING)},
    **{(state, Recheck): _S.CHECKING for state in (_S.QUEUED, _S.LANDING)},
    (_S.CHECKING, AskReview): _S.REVIEWING,
    (_S.CHECKING, Confirm): _S.DONE,
    (_S.REVIEWING, Approve): _S.LANDING,
    (_S.LANDING, AskReview): _S.REVIEWING,
    (_S.LANDING, Land): _S.DONE,
    (_S.WORKING, Resume): _S.QUEUED,
    **{(state, TryAgain): _S.QUEUED for state in _IN_HAND},
    **{(state, Fail): _S.FAILED for state in (_S.QUEUED, *_IN_HAND, _S.PARKED)},
    **{(state, Rewind): _S.QUEUED for state in (_S.QUEUED, *_IN_HAND, _S.PARKED, _S.FAILED, _S.STOPPED)},
    **{(state, Stop): _S.STOPPED for state in (_S.DRAFT, _S.QUEUED, *_IN_HAND, _S.PARKED)},
    **{(state, Park): _S.PARKED for state in (_S.QUEUED, *_IN_HAND)},
    **{(state, Retry): _S.QUEUED for state in (_S.FAILED, _S.STOPPED)},
}
"""Every legal move but Unpark, whose goal is stored in the ticket."""

_RESUMES_AT = {
    _S.QUEUED: _S.QUEUED,
    _S.WORKING: _S.QUEUED,
    _S.CHECKING: _S.CHECKING,
    _S.REVIEWING: _S.REVIEWING,
    _S.LANDING: _S.LANDING,
}
"""Where a parked ticket resumes: an interrupted run starts again from the queue, everything else stays in place."""


def allowed(state: State) -> frozenset[type[Step]]:
    """The steps that may be taken from a state."""
    steps = {step for (origin, step) in MOVES if origin is state}
    return frozenset(steps | {Unpark} if state is State.PARKED else steps)


def move(ticket: Ticket, step: Step, now: float) -> Ticket:
    """The ticket after the step, one version later. Raises StateConflict where the step is not legal."""
    goal = _goal(ticket, step)
    moved = replace(ticket, state=goal, version=ticket.version + 1, moved_at=now, parked=None, reason="")
    match step:
        case Start(target, behind):
            attempt = ticket.attempt if ticket.interrupted else ticket.attempt + 1
            if ticket.base is None:
                moved = replace(moved, base=target, behind=behind)
            return replace(moved, attempt=attempt, interrupted=False, change=None)
        case StartPointUsed():
            return replace(moved, plant=None)
        case Propose(change, claims):
            return replace(moved, change=change, claims=claims or ticket.claims, lost=False)
        case Land(commit, unchecked) | Confirm(commit, unchecked):
            return replace(moved, landed=commit, unchecked=unchecked, feedback="", reason=ticket.reason)
        case AlreadyThere(change, reason):
            return replace(moved, change=change, reason=reason, feedback="")
        case TryAgain(reason, feedback, ground) | Fail(reason, feedback, ground):
            sent_back = replace(moved, reason=reason, feedback=feedback or ticket.feedback)
            if isinstance(step, TryAgain):
                sent_back = replace(sent_back, skipped=ticket.skipped + step.skips)
            if ground is not None and ground.lost:
                sent_back = replace(sent_back, claims=ground.lost, lost=True)
            return replace(sent_back, base=ground.base, plant=ground.tree, behind=None) if ground else sent_back
        case Park(reason, detail, until):
            parked = Parked(reason=reason, detail=detail, back_to=_RESUMES_AT[ticket.state], until=until)
            cut_off = ticket.state is State.WORKING or ticket.interrupted
            return replace(moved, parked=parked, reason=detail, interrupted=cut_off)
        case Resume(reason):
            return replace(moved, reason=reason, interrupted=True)
        case Stop(reason) | Recheck(reason):
            return replace(moved, reason=reason)
        case Rewind(ground, reason, feedback):
            back = replace(moved, base=ground.base, plant=ground.tree, change=None, interrupted=False)
            return replace(back, spared=ticket.attempt, skipped=0, reason=reason, feedback=feedback)
        case Retry(feedback):
            told = "\n\n".join(words for words in (feedback, ticket.feedback) if words)
            return replace(moved, spared=ticket.attempt, skipped=0, interrupted=False, feedback=told)
        case _:
            return moved


_ONLY_CHECKPOINTS = (Inspect, Confirm)
_ONLY_WITH_AGENT = (Start, StartPointUsed, Rewind, Propose, Prove, AlreadyThere, Recheck, AskReview, Approve, Land)
_ASKED_FOR = {
    Park: "paused",
    Unpark: "resumed",
    Retry: "tried again",
    Stop: "stopped",
    Start: "started",
    Rewind: "rewound",
}
"""A person's word for each step that they can ask for."""


def _goal(ticket: Ticket, step: Step) -> State:
    if isinstance(step, Unpark) and ticket.parked is not None:
        return ticket.parked.back_to
    goal = MOVES.get((ticket.state, type(step)))
    foreign = _ONLY_WITH_AGENT if ticket.spec.checkpoint else _ONLY_CHECKPOINTS
    if goal is None or isinstance(step, foreign) or (isinstance(step, Recheck) and ticket.change is None):
        asked = f"be {_ASKED_FOR[type(step)]}" if type(step) in _ASKED_FOR else "go that way"
        raise StateConflict(
            f"Ticket {ticket.id} is {ticket.state.value}, so it cannot {asked} now: see `legion ticket {ticket.id}`."
        )
    return goal
