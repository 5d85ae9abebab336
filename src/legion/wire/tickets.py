"""Shapes of requests and answers about tickets, their runs, logs, diffs and recordings."""

from __future__ import annotations

from dataclasses import field

from legion.domain.machines.machine import label_fault as machine_label_fault
from legion.domain.review.path_patterns import glob_fault
from legion.domain.tickets.policy import MOST_BUDGET, LandingGate, ReviewPolicy
from legion.wire.controls import EditTicket
from legion.wire.lazy import dataclass
from legion.wire.page_parts import (
    EnvironmentLine,
    EvidenceLine,
    PredictedConflictLine,
    ReversalLine,
    ReviewLine,
    WeakeningLine,
)
from legion.wire.questions import QuestionLine
from legion.wire.teams import CrewLine
from legion.wire.ticket_fields import REQUIRED, AgentNeed, command_fault, described, fields_of, label_fault

_MOST_TEXT = 1_000_000
"""Characters of each text that an agent is given; what is longer belongs into a file of the repository."""


@dataclass(kw_only=True)
class NewTicket:
    """A ticket as a person writes it. Each field declares its option, limits and documents: see `ticket_fields`."""

    title: str = described(REQUIRED, short="-t", most=300, help="One line; the first 40 letters of TEXT if left out.")
    text: str = described("", argument="TEXT", most=_MOST_TEXT, help="The change that you want; - reads it from stdin.")
    context: str = described(
        "", short="-c", most=_MOST_TEXT, help="What the agent should know: where to look, what was decided."
    )
    criteria: str = described(
        "", short="-k", most=_MOST_TEXT, help="When it is done, in terms that can be checked; one per line."
    )
    plan: str = described("", short="-p", most=_MOST_TEXT, help="How to do it, if you know.")
    key: str = described("", plan_only=True, help="The name by which other tickets of the plan file refer to it.")
    after: list[int] = described(
        list, short="-a", metavar="N,N", label="after", see="board.md", help="Tickets that must land before it starts."
    )
    after_keys: list[str] = field(default_factory=list)
    """Keys of tickets of the same request that it comes after."""
    files: list[str] = described(
        list,
        metavar="GLOB",
        item_fault=glob_fault,
        label="may touch",
        see="configuration.md#protected",
        help="Protected files it may touch; may be given again.",
    )
    prove: list[str] = described(
        list,
        metavar="COMMAND",
        item_fault=command_fault,
        label="proofs",
        see="checks.md",
        help="A command that must pass on its change; may be given again. "
        "'CRITERION :: COMMAND' binds it to a line of -k.",
    )
    accept: list[str] = described(
        list,
        metavar="NAME",
        label="acceptance",
        see="checks.md",
        help="Held-out acceptance of your config that it must pass; may be given again.",
    )
    checkpoint: bool = described(
        False, see="board.md", help="No agent: only run the checks on what its --after landed."
    )
    epic: str = described("", metavar="NAME", label="epic", help="Follow it together with others of this name.")
    priority: int = described(
        0, metavar="N", least=-1000, most=1000, label="priority", help="Higher starts first; 0 if left out."
    )
    driver: str = described(
        "",
        metavar="NAME",
        needs=AgentNeed.AGENT,
        see="drivers.md",
        help="Which kind of agent program, as named in your config.",
    )
    team: str = described(
        "",
        metavar="NAME",
        needs=AgentNeed.AGENT,
        see="teams.md",
        help="The team that works on it, see `legion team list`; the project's default if left out.",
    )
    branch: str = described(
        "",
        metavar="NAME",
        most=250,
        needs=AgentNeed.AGENT,
        see="sessions.md",
        help="Start from this branch of yours, or of a remote; its work becomes part of the change.",
    )
    labels: list[str] = described(
        list,
        option="--label",
        metavar="NAME",
        most=20,
        item_fault=label_fault,
        label="labels",
        see="#labels",
        help="A label, which may have a ladder of models in your config; may be given again.",
    )
    on: list[str] = described(
        list,
        metavar="LABEL",
        most=8,
        item_fault=lambda label: machine_label_fault(label) or None,
        needs=AgentNeed.AGENT,
        label="on",
        see="machines.md",
        help="A label, or the name, of the machine that its agents work on; may be given again.",
    )
    command: str = described(
        "",
        metavar="CMD",
        needs=AgentNeed.AGENT,
        see="drivers.md",
        help="Any program as the agent, for this ticket.",
    )
    model: str = described("", metavar="M", needs=AgentNeed.AGENT, help="The model the agent should use.")
    max_attempts: int | None = described(
        None, metavar="N", least=1, most=20, see="attempts.md", help="How often it may be tried in all."
    )
    ask: bool = described(
        False,
        needs=AgentNeed.ASKS,
        see="claude.md",
        help="Its agent may ask you for what it is not allowed to do: `legion inbox`.",
    )
    plan_first: bool = described(
        False,
        needs=AgentNeed.READS_ONLY,
        see="agents.md#plans",
        help="Its agent only reads until you approve its plan: `legion approve`.",
    )
    budget: float | None = described(
        None,
        metavar="USD",
        above=0,
        most=MOST_BUDGET,
        needs=AgentNeed.BUDGETS,
        see="rhythm.md",
        help="Dollars that all its runs may cost together.",
    )
    review: str = described(
        "",
        choices=tuple(policy.value for policy in ReviewPolicy),
        see="review.md",
        help="Whether an independent reviewer reads its change; as the project says if left out.",
    )
    gate: str = described(
        "",
        choices=tuple(gate.value for gate in LandingGate),
        label="gate",
        see="landing.md#your-gate",
        help="Whether its change waits for `legion land`; as its epic or the project says if left out.",
    )
    worker_id: int | None = described(
        None,
        argument="WORKER",
        least=0,
        most=1_000_000,
        see="tools.md",
        help="Accepted from callers of legion_cc and without effect: the next free agent takes the ticket.",
    )


TICKET_FIELDS = fields_of(NewTicket)
"""The described fields by name."""


@dataclass(kw_only=True)
class Dispatch:
    """Many tickets at once, all or none. `request` makes a repeated call answer with the first result."""

    cwd: str
    tickets: list[NewTicket]
    request: str = ""
    to: str = ""
    """The standing agent that works on it: only for one ticket that can start now."""
    dry_run: bool = False
    """Check everything and create nothing."""


@dataclass(kw_only=True)
class Dispatched:
    schema: str = "legion.dispatched/1"
    ids: list[int]
    keys: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    """Things a person should know now: not trusted yet, red baseline, no sandbox."""
    planned: list[str] = field(default_factory=list)
    """Of a dry run: the tickets that it would create, in the order in which they can start."""


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


@dataclass(kw_only=True)
class Action:
    """The body of stop, retry, pause and the like."""

    feedback: str = ""
    edit: EditTicket | None = None
    """For a retry: what changes before it is tried again."""


@dataclass(kw_only=True)
class RewindTo:
    to: str
    """RUN:LINE or RUN, as `legion events N` shows them."""
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
    """Taken from the working tree of a running agent just now."""


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
    """`legion record on` and `legion record off`."""

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
