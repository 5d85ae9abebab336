"""Shapes of requests and answers about plans and epics."""

from __future__ import annotations

from dataclasses import field

from legion.wire.dispatch import NewTicket
from legion.wire.lazy import dataclass
from legion.wire.questions import QuestionLine
from legion.wire.tickets import TicketLine, UsageLine


@dataclass(kw_only=True)
class NewPlan:
    """A goal to plan. `request` makes a repeated call answer with the first result."""

    cwd: str
    goal: str
    team: str = ""
    """For the tickets; empty: the project's default."""
    model: str = ""
    """The planner's; empty: as the settings say."""
    budget: float | None = None
    """Dollars that the planner may cost."""
    questions: bool = False
    """The planner may ask once before it plans."""
    epic: str = ""
    """Of the tickets; empty: the plan's own name."""
    spec: bool = False
    """The planner writes a specification first."""
    keep_docs: bool = False
    """The documents of the specification land in the repository, with the first ticket of the plan."""
    request: str = ""


@dataclass(kw_only=True)
class SplitTicket:
    model: str = ""
    budget: float | None = None


@dataclass(kw_only=True)
class ReplanEpic:
    cwd: str
    epic: str
    why: str = ""
    model: str = ""
    budget: float | None = None


@dataclass(kw_only=True)
class PlanLine:
    """A plan in a list."""

    id: str
    """P3: never a ticket's number."""
    project: str
    goal: str
    state: str
    """planning, asking, ready, faulty, partly, approved, failed or dropped."""
    source: str
    epic: str
    tickets: int
    approved: int
    findings: int
    rounds: int
    reason: str
    created_at: float
    moved_at: float


@dataclass(kw_only=True)
class PlanList:
    schema: str = "legion.plans/1"
    plans: list[PlanLine]


@dataclass(kw_only=True)
class PlanCriterionLine:
    text: str
    proof: str = ""
    why_not: str = ""


@dataclass(kw_only=True)
class PlanTicketLine:
    """A proposed ticket, and the one that it became."""

    key: str
    title: str
    text: str
    context: str
    plan: str
    criteria: list[PlanCriterionLine]
    files: list[str]
    new_files: list[str]
    after: list[str]
    """Keys, and numbers of tickets on the board."""
    checkpoint: bool
    labels: list[str]
    lines: int
    ticket: int | None = None
    state: str = ""
    """Of that ticket."""
    when: str = ""
    """The result of others after which alone it starts."""
    asks_for: list[str] = field(default_factory=list)
    """Expected files that are protected: a change of them still needs your approval."""


@dataclass(kw_only=True)
class PlanFindingLine:
    kind: str
    ticket: str
    text: str


@dataclass(kw_only=True)
class PlanRoundLine:
    number: int
    author: str
    """planner, person or template."""
    usable: bool
    findings: list[PlanFindingLine]
    message: str
    at: float


@dataclass(kw_only=True)
class PlanDocumentLine:
    """A document of its specification."""

    stage: str
    """gather, research, write or criticise."""
    text: str


@dataclass(kw_only=True)
class PlanEstimateLine:
    """Null: unknown, because too few tickets of this project have landed."""

    usd: float | None
    seconds: float | None
    usd_error: float | None
    """The median error of earlier estimates: 0.4 is 40 %; null where none can be checked yet."""
    seconds_error: float | None


@dataclass(kw_only=True)
class PlanPage:
    schema: str = "legion.plan/1"
    plan: PlanLine
    summary: str
    risks: str
    tickets: list[PlanTicketLine]
    chain: list[str]
    """The longest chain, by key."""
    findings: list[PlanFindingLine]
    rounds: list[PlanRoundLine]
    estimate: PlanEstimateLine
    questions: list[QuestionLine]
    """Those of its planner that wait for an answer."""
    team: str = ""
    model: str = ""
    budget: float | None = None
    usage: UsageLine | None = None
    """Of its planner."""
    drops: list[int] = field(default_factory=list)
    """Tickets that it replaces once all of it is approved."""
    notes: list[str] = field(default_factory=list)
    """Why its planner does not start, a sentence each."""
    spec: bool = False
    """A specification is written before the plan."""
    keep_docs: bool = False
    """Its documents land in the repository."""
    documents: list[PlanDocumentLine] = field(default_factory=list)
    """Those that are written."""


@dataclass(kw_only=True)
class ApprovePlan:
    tickets: list[str] = field(default_factory=list)
    """Keys; empty: all that are left."""
    anyway: bool = False
    """Approve although findings are left."""
    dry_run: bool = False
    request: str = ""


@dataclass(kw_only=True)
class PlanApproved:
    schema: str = "legion.approved/1"
    plan: str
    state: str
    tickets: dict[str, int]
    """The new tickets by key; empty for a dry run."""
    proposed: list[NewTicket]
    """As they were dispatched, or would be."""
    dropped: list[int]
    message: str
    notes: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class RejectPlan:
    why: str


@dataclass(kw_only=True)
class PlanText:
    """A plan as TOML, for an editor."""

    schema: str = "legion.plantext/1"
    plan: str
    version: int
    text: str


@dataclass(kw_only=True)
class SavePlan:
    text: str
    version: int
    """As it was read: a plan that changed meanwhile is not overwritten."""


@dataclass(kw_only=True)
class EpicStageLine:
    """A stage of the specification that an epic starts with."""

    plan: str
    stage: str
    """gather, research, write, criticise or plan."""
    state: str
    """waiting, working, asking, done, failed or stopped."""
    usd: float | None = None
    """What the run that wrote its document cost; null where there is none."""


@dataclass(kw_only=True)
class EpicPage:
    """An epic: its tickets, progress and money."""

    schema: str = "legion.epic/1"
    name: str
    tickets: list[TicketLine]
    counts: dict[str, int]
    done: int
    total: int
    landed: list[str]
    """Commits, in the order of their landing."""
    usage: UsageLine | None
    budget: float | None
    """What the epic may cost in all; null: no limit."""
    plans: list[PlanLine]
    waves: list[list[int]]
    critical_path: list[int]
    gate: str = ""
    """`auto` or `person`, if the epic has a gate of its own."""
    stages: list[EpicStageLine] = field(default_factory=list)
    """Of the specifications that its plans start with; their documents are on the plan's page."""
    lands_when: str = ""
    """What its branch waits for, if a person asked to land it."""


@dataclass(kw_only=True)
class EpicBudget:
    cwd: str
    epic: str
    usd: float
    """0: the limit of the settings counts again."""


@dataclass(kw_only=True)
class StopEpic:
    cwd: str
    epic: str
