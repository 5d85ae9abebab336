"""The page of one ticket: evidence, reviews, environment, crew; its log, its diff and its recordings."""

from __future__ import annotations

from dataclasses import field

from legion.wire.bases import TextPiece
from legion.wire.lazy import dataclass
from legion.wire.mail import QuestionLine
from legion.wire.table import Number, OpenTo, RunId, Table, Text, TicketId, operation
from legion.wire.tickets import EventLine, RunLine, TicketLine, UsageLine


@dataclass(kw_only=True)
class PredictedConflictLine:
    """A place that two changes in work both touch. Lines are those of each side's own file; 0 where there are none."""

    ticket: int
    """The other one; 0 is the landed code."""
    path: str
    first: int
    last: int
    their_first: int
    their_last: int
    definition: str = ""
    """The function, method or section that both change, where it is known."""


@dataclass(kw_only=True)
class ReversalLine:
    idle: list[str]
    """Commands that are green without the change, too: they prove nothing about it."""
    red: list[str]
    """Commands that fail without the change, as they should."""
    unproven: list[UnprovenLine]
    """Pieces of the change without which everything is still green."""
    tried: int
    left: int
    """Pieces for which no time was left."""


@dataclass(kw_only=True)
class UnprovenLine:
    path: str
    line: int
    lines: int
    """How many lines it added, or took away where it added none."""


@dataclass(kw_only=True)
class EvidenceLine:
    """A criterion and what proves it. Several commands for one criterion are several lines."""

    criterion: str
    backing: str
    """`proven`, `green`, `red`, `open`, `read` (a reader says that it is met) or `claimed`."""
    by: str
    """The command; empty where nothing is bound to it."""
    commit: str | None
    """What the command ran on; null before that."""
    idle: bool = False
    """The command is green without the change, too."""
    own: bool = False
    """The change itself wrote the script or recipe that decides it."""


@dataclass(kw_only=True)
class HiddenCharacterLine:
    """A character that the change adds and a screen does not show; it may make code read as other code than it is."""

    path: str
    line: int
    """In the file as it is."""
    code: str
    """`U+202E`"""


@dataclass(kw_only=True)
class WeakeningLine:
    """One place of a change that makes tests look weaker. A hint for people, no proof."""

    sign: str
    """`fewer assertions`, `skip added`, `test file removed` or `failure silenced`."""
    path: str
    line: int | None
    """In the file as it is; null where what matters is gone."""
    words: str


@dataclass(kw_only=True)
class EnvironmentLine:
    """Where its agent works, or worked last."""

    run: int
    slot: int | None
    """Null once the run has ended."""
    ports: list[int]
    listening: list[int]
    temp: str | None
    temp_bytes: int
    worktree_bytes: int
    all_counted: bool
    limit_bytes: int
    up: CommandLine | None
    down: CommandLine | None
    notes: list[str]


@dataclass(kw_only=True)
class CommandLine:
    """A command of the project's environment that was run."""

    command: str
    ok: bool
    how: str
    tail: str


@dataclass(kw_only=True)
class FindingLine:
    id: int
    """Its number among the findings of this reader on this ticket."""
    weight: str
    """`blocking`, `concern` or `nit`, as it counts."""
    file: str
    """Empty: about the change as a whole."""
    line: int | None
    text: str


@dataclass(kw_only=True)
class CriterionLine:
    """What a reader says about one criterion, by its number from 1 on."""

    number: int
    met: bool
    why: str


@dataclass(kw_only=True)
class ReviewLine:
    """One reader's review of one change."""

    reader: str
    round: int
    """Counts this reader's looks at the ticket."""
    attempt: int
    commit: str
    """The change."""
    binding: bool
    """Whether the ticket waits, or waited, for it."""
    why: str
    """Why it is reviewed."""
    asked_at: float
    given_at: float | None
    verdict: str
    """`approve` or `changes`; `none` where no verdict came that could be used; empty before it is given."""
    complaint: str = ""
    """What was wrong with the last answer that could not be used."""
    summary: str = ""
    findings: list[FindingLine] = field(default_factory=list)
    criteria: list[CriterionLine] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What was made of the reader's words."""
    overruled: bool = False
    """It asked for changes, and the rules make an approval of that: nothing that counts blocks."""


@dataclass(kw_only=True)
class StageLine:
    """A role in its place in a ticket's team."""

    role: str
    """Its name in runs."""
    part: str
    """`advise`, `build`, `read` or `resolve`."""
    model: str
    """Empty: as the person's settings say."""
    runs: list[int]
    """Those of it, oldest first."""


@dataclass(kw_only=True)
class AdviceLine:
    role: str
    run: int
    turn: int
    """0 for the first, 1 for that for fresh eyes."""
    text: str
    given_at: float


@dataclass(kw_only=True)
class CrewLine:
    """Who works on a ticket: its team as it was at the dispatch."""

    team: str
    stages: list[StageLine]
    advice: list[AdviceLine]
    changed: str = ""
    """Why a ticket that is dispatched now would get another; empty where it would not."""


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
    without: str = ""
    """What it said without the change: `red`, as it should, or `green`; empty where that was not tried."""


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
    merged: str = ""
    """The files that Legion merged by definition when it landed, each with its definitions."""
    usage: UsageLine | None = None
    """Of all its runs; null where nothing was counted."""
    budget: float | None = None
    retires: list[int] = field(default_factory=list)
    """Landed tickets whose proofs end when it lands."""
    retired: str = ""
    """Why its proofs no longer run for later changes; empty: they run for those that touch the same code."""
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
class LogText(TextPiece):
    """A piece of a run's output. `next_offset` continues; `ended` says that no more will come."""

    schema: str = "legion.log/1"
    ticket: int
    run: int | None
    ended: bool


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


class TicketPageRows(Table):
    @operation("GET", "/v1/tickets/{id}", open_to=OpenTo.LOOKS | OpenTo.AGENTS)
    def ticket(self, id: TicketId, /) -> TicketPage:
        """Everything about one ticket"""

    @operation("GET", "/v1/tickets/{id}/log", open_to=OpenTo.LOOKS | OpenTo.AGENTS)
    def log(self, id: TicketId, /, run: RunId | None = None, offset: Number = 0) -> LogText:
        """The output of its agent, from an offset on"""

    @operation("GET", "/v1/tickets/{id}/diff", open_to=OpenTo.LOOKS | OpenTo.AGENTS)
    def diff(self, id: TicketId, /, since: Text = "") -> Diff:
        """Its change, also while the agent is working; with `since`, what changed after that moment of its history"""

    @operation("GET", "/v1/tickets/{id}/cassette", open_to=OpenTo.LOOKS)
    def cassette(self, id: TicketId, /, name: str = "") -> Cassette:
        """The model's replies in recorded runs, as scripts to replay"""
