"""Shapes of requests and answers about tickets, their runs, logs, diffs and recordings."""

from __future__ import annotations

from dataclasses import field

from legion.wire.controls import EditTicket
from legion.wire.lazy import dataclass
from legion.wire.page_parts import (
    EnvironmentLine,
    EvidenceLine,
    HiddenCharacterLine,
    PredictedConflictLine,
    ReversalLine,
    ReviewLine,
    WeakeningLine,
)
from legion.wire.questions import QuestionLine
from legion.wire.teams import CrewLine


@dataclass(kw_only=True)
class TicketLine:
    """A ticket in a list."""

    id: int
    project: str
    title: str
    state: str
    after: list[int]
    attempt: int
    max_attempts: int
    checkpoint: bool
    epic: str
    priority: int
    reason: str
    unchecked: bool
    held_up_by: list[int]
    """Failed or stopped tickets that it waits for."""
    created_at: float
    moved_at: float
    doing: str = ""
    """What happens at this moment, in a few words: `waits for 3`, `in the merge queue, place 2 of 5, 12 lines`."""
    doing_since: float | None = None
    """When that began, where it lasts: an agent at work, a reviewer, [setup]."""
    parked_until: float | None = None
    """When a parked ticket resumes by itself."""
    question: int | None = None
    """A question of its agent that waits for an answer: `legion answer`."""
    undoes: int | None = None
    """The landed ticket that it reverts."""
    conflicts_with: list[int] = field(default_factory=list)
    """Tickets in work with which its change will conflict as both stand; 0 is the landed code."""
    unproven: int = 0
    """Criteria of a done ticket that no command proves: claimed, or read by a reviewer at best."""
    team: str = ""
    labels: list[str] = field(default_factory=list)
    agent: str = ""
    """The driver, model or program that it names, or the standing agent that holds it."""
    offers: list[str] = field(default_factory=list)
    """The operations that may be called for it now, by their names."""


@dataclass(kw_only=True)
class UsageLine:
    """What was spent at providers, as the gateway counted it. Tokens, but for what is named otherwise."""

    requests: int
    failed: int
    input: int
    output: int
    cache_read: int
    cache_write: int
    usd: float
    unpriced: int
    """Requests whose model has no known price: `usd` is without them."""


@dataclass(kw_only=True)
class RunLine:
    id: int
    attempt: int
    generation: int
    started_at: float
    ended_at: float | None
    outcome: str | None
    detail: str
    saved: str | None
    access: str = ""
    """How it reached its model: a provider's name, or that it could read the person's own login."""
    role: str = ""
    """Who read the change, or advised; empty for who builds."""
    usage: UsageLine | None = None


@dataclass(kw_only=True)
class ReceiptLine:
    name: str
    command: str
    commit: str
    tree: str
    verdict: str
    exit_code: int | None
    duration: float
    made_at: float
    tail: str
    output: str
    """The file with the whole output."""
    machine: str = ""
    """Where it ran; empty: on the head."""
    trusted: str = ""
    """Who trusts the check although it stays green when the code is broken; empty where it was shown to go red."""


@dataclass(kw_only=True)
class TicketPage:
    """Everything about one ticket."""

    schema: str = "legion.ticket/1"
    ticket: TicketLine
    text: str
    context: str
    criteria: str
    plan: str
    files: list[str]
    prove: list[str]
    driver: str
    command: str
    model: str
    feedback: str
    parked_until: float | None
    base: str | None
    change: str | None
    landed: str | None
    worktree: str | None
    runs: list[RunLine]
    receipts: list[ReceiptLine]
    history: list[EventLine]
    changed_files: list[str]
    cause: str = ""
    """Why its last attempt failed: `checks`, `conflict`, `review`, `size` or `attempt`. Empty if it did not."""
    environment: EnvironmentLine | None = None
    """Null before the first run."""
    conversation: str = ""
    """The agent program's own session, which all its runs share."""
    forked_from: str = ""
    """The run whose conversation that session started as a copy of; empty: it started fresh."""
    access: str = ""
    """How its latest run reaches its model."""
    not_needed: list[str] = field(default_factory=list)
    """Checks that it landed without, each with the paths of which it touches nothing."""
    usage: UsageLine | None = None
    """Of all its runs; null where nothing was counted."""
    budget: float | None = None
    ask: bool = False
    planning: str = "none"
    """Whether its agent needs a plan first: `none`, `wanted`, `proposed` or `approved`."""
    proposal: str = ""
    """The plan that its agent proposed last."""
    questions: list[QuestionLine] = field(default_factory=list)
    """Those that wait for an answer."""
    undone_by: list[int] = field(default_factory=list)
    """Tickets that take it back, or tried to."""
    clashes: list[PredictedConflictLine] = field(default_factory=list)
    """Where its change will conflict, as it stands."""
    weakened: list[WeakeningLine] = field(default_factory=list)
    """Signs that its change makes tests weaker."""
    hidden_characters: list[HiddenCharacterLine] = field(default_factory=list)
    """Characters that its change adds and a screen does not show."""
    evidence: list[EvidenceLine] = field(default_factory=list)
    """Each line of the criteria, and what stands behind it."""
    accept: list[str] = field(default_factory=list)
    """Held-out acceptance that it has to pass."""
    reviews: list[ReviewLine] = field(default_factory=list)
    """What readers said about its changes, and who is to read, oldest first."""
    reversal: ReversalLine | None = None
    """What came out when its change was taken back, whole and in pieces; null where that was not tried."""
    labels: list[str] = field(default_factory=list)
    on: list[str] = field(default_factory=list)
    """Labels that its machine must have."""
    machine: str = ""
    """Where its latest job runs or ran; empty before the first."""
    placed_because: str = ""
    """Why there; empty where there was no choice."""
    gate: str = ""
    """`auto` or `person`, if the ticket has a gate of its own."""
    crew: CrewLine | None = None
    """Who works on it; null where no team does."""
    progress: str = ""
    """The last `STATUS:` line of its agent. Only a claim."""
    smoke_tests: str = ""
    """The tests that its agent names between SMOKE_TESTS and END_SMOKE_TESTS, for a person to try. Only a claim."""


@dataclass(kw_only=True)
class EventLine:
    n: int
    at: float
    kind: str
    project: str | None
    ticket: int | None
    data: dict[str, object]
    words: str = ""
    """The event in one line."""


@dataclass(kw_only=True)
class Action:
    """The body of stop, retry, pause and the like."""

    feedback: str = ""
    edit: EditTicket | None = None
    """For a retry: what changes before it is tried again."""


@dataclass(kw_only=True)
class RewindTo:
    to: str
    """RUN:LINE or RUN, as `legion status events N` shows them."""
    feedback: str = ""


@dataclass(kw_only=True)
class Acted:
    schema: str = "legion.acted/1"
    tickets: list[int]
    """The tickets it touched."""
    message: str


@dataclass(kw_only=True)
class Diff:
    schema: str = "legion.diff/1"
    ticket: int
    base: str
    head: str
    text: str
    live: bool
    """Taken from the working tree of a running agent, just now or at `as_of`."""
    as_of: float | None = None
    """When this state arrived from the machine of its agent; null: it is of just now, or final."""
    hidden_characters: list[HiddenCharacterLine] = field(default_factory=list)
    """Characters that the change adds and a screen does not show."""


@dataclass(kw_only=True)
class LogText:
    """A piece of a run's output. `next_offset` continues; `ended` says that no more will come."""

    schema: str = "legion.log/1"
    ticket: int
    run: int | None
    offset: int
    next_offset: int
    text: str
    ended: bool


@dataclass(kw_only=True)
class SetRecording:
    """`legion plan record on` and `legion plan record off`."""

    on: bool


@dataclass(kw_only=True)
class CassetteFile:
    name: str
    text: str


@dataclass(kw_only=True)
class Cassette:
    """What the model said in a ticket: one script for its agent, one for each subagent."""

    schema: str = "legion.cassette/1"
    ticket: int
    files: list[CassetteFile]
