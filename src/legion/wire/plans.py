"""Plans of goals, and epics."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from legion.wire.bases import Waves
from legion.wire.dispatch import NewTicket
from legion.wire.lazy import dataclass
from legion.wire.mail import QuestionLine
from legion.wire.table import Folder, OpenTo, PlanId, Table, TicketId, operation
from legion.wire.ticket_fields import REQUIRED, described
from legion.wire.tickets import TicketLine, UsageLine

if TYPE_CHECKING:
    from legion import wire


@dataclass(kw_only=True)
class _PlannerWish:
    cwd: str
    model: str = described("", metavar="M", help="The planner's model.")
    budget: float | None = described(None, metavar="USD", help="Dollars that the planner may cost.")


@dataclass(kw_only=True)
class NewPlan(_PlannerWish):
    """A goal to plan. `request` makes a repeated call answer with the first result."""

    goal: str = described(REQUIRED, no_option=True, help="What should be there in the end; a planner makes tickets.")
    team: str = described("", metavar="NAME", help="The team of the tickets.")
    questions: bool = described(False, help="The planner may ask you once before it plans: `legion inbox`.")
    epic: str = described("", metavar="NAME", help="The epic of the tickets; the plan's name if left out.")
    depth: str = described(
        "",
        option="--spec",
        choices=("auto", "short", "full"),
        help="Write a specification first, and plan from it; `auto` chooses by rule whether, and how much of it.",
    )
    spec: bool = False
    """As `depth = full`."""
    stop_at: str = described("", choices=("spec",), help="Wait for you when the specification is written.")
    keep_docs: bool = described(False, help="Let the specification land, as the first ticket.")
    request: str = ""


@dataclass(kw_only=True)
class SplitTicket:
    model: str = described("", metavar="M", help="The planner's model.")
    budget: float | None = described(None, metavar="USD", help="Dollars that the planner may cost.")


@dataclass(kw_only=True)
class ReplanEpic(_PlannerWish):
    epic: str = described(REQUIRED, argument="EPIC", help="Its name, or that of its plan.")
    why: str = described("", argument="[WHY]", help="What happened since.")


@dataclass(kw_only=True)
class PlanLine:
    """A plan in a list."""

    id: str
    """P3: never a ticket's number."""
    project: str
    goal: str
    state: str
    """planning, asking, written, ready, faulty, partly, approved, reached, failed or dropped."""
    source: str
    epic: str
    tickets: int
    approved: int
    findings: int
    rounds: int
    reason: str
    created_at: float
    moved_at: float
    offers: list[str] = field(default_factory=list)
    """The operations that may be called for it now, by their names."""


@dataclass(kw_only=True)
class PlanList:
    schema: str = "legion.plans/1"
    plans: list[PlanLine]


@dataclass(kw_only=True)
class PlanCriterionLine:
    text: str
    proof: str = ""
    why_not: str = ""
    tried: str = ""
    """What the proof said on the target: `red`, as it should, or `green`; else why it was not tried. Empty: a check."""
    state: str = ""
    """Of a point that a last reader read: `done`, `missing` or `different`."""
    evidence: str = ""
    """Where it can be seen, by the reader's words."""


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
    """Expected files that are protected: a change of them needs your approval, but for added tests."""


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
    depth: str = ""
    """What a rule chose, and why: `short: 4 points, 70 words`; empty where the person chose."""
    keep_docs: bool = False
    """Its documents land in the repository."""
    documents: list[PlanDocumentLine] = field(default_factory=list)
    """Those that are written."""
    points: list[PlanCriterionLine] = field(default_factory=list)
    """What a last reader found: the goal, point by point, held against what landed."""


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
class EpicPage(Waves):
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
    gate: str = ""
    """`auto` or `person`, if the epic has a gate of its own."""
    stages: list[EpicStageLine] = field(default_factory=list)
    """Of the specifications that its plans start with; their documents are on the plan's page."""
    lands_when: str = ""
    """What its branch waits for, if a person asked to land it."""
    points: list[PlanCriterionLine] = field(default_factory=list)
    """What its last reader found, point by point."""
    reader: str = ""
    """The plan of that reader, with the tickets for what is missing."""


@dataclass(kw_only=True)
class EpicBudget:
    cwd: str
    epic: str
    usd: float
    """0: the limit of the settings counts again."""


@dataclass(kw_only=True)
class EpicGate:
    cwd: str
    epic: str
    gate: str
    """`auto`, `person`, or empty for the project's."""


@dataclass(kw_only=True)
class NamedEpic:
    """An epic, and any folder inside its project."""

    cwd: str
    epic: str


class PlanRows(Table):
    """Of agents, only a leader uses plans; it approves where the person's settings say so."""

    @operation(
        "POST",
        "/v1/plans",
        open_to=OpenTo.ACTS | OpenTo.AGENTS,
        plain="cwd goal budget questions epic spec depth stop_at request",
        created=True,
    )
    def plan(self, wanted: NewPlan, /) -> PlanPage:
        """Have a planner propose tickets for a goal"""

    @operation("GET", "/v1/plans", open_to=OpenTo.LOOKS | OpenTo.AGENTS)
    def plans(self, cwd: Folder, all: bool = False) -> PlanList:
        """The plans of this project, and what each waits for"""

    @operation("GET", "/v1/plans/{id}", open_to=OpenTo.LOOKS | OpenTo.AGENTS)
    def plan_page(self, id: PlanId, /) -> PlanPage:
        """A plan with its tickets, findings, rounds and estimate"""

    @operation(
        "POST",
        "/v1/plans/{id}/approve",
        open_to=OpenTo.ACTS | OpenTo.AGENTS,
        plain="tickets dry_run request",
        asks="Approve {what}? Its tickets are dispatched at once.",
    )
    def approve_plan(self, id: PlanId, wanted: ApprovePlan, /) -> PlanApproved:
        """Dispatch tickets of a plan, all or none; or plan from its specification"""

    @operation("POST", "/v1/plans/{id}/reject", open_to=OpenTo.ACTS | OpenTo.AGENTS, plain="why")
    def reject_plan(self, id: PlanId, wanted: RejectPlan, /) -> PlanPage:
        """Send a plan back to its planner; what was approved stays"""

    @operation("POST", "/v1/plans/{id}/retry", open_to=OpenTo.ACTS)
    def retry_plan(self, id: PlanId, /) -> PlanPage:
        """Start the planner of a failed plan again"""

    @operation("POST", "/v1/plans/{id}/drop", open_to=OpenTo.ACTS, asks="Drop {what}? Its approved tickets stay.")
    def drop_plan(self, id: PlanId, /) -> PlanPage:
        """End a plan; its approved tickets stay"""

    @operation("GET", "/v1/plans/{id}/text", open_to=OpenTo.LOOKS)
    def plan_text(self, id: PlanId, /) -> PlanText:
        """A plan as TOML, to edit it"""

    @operation("POST", "/v1/plans/{id}/text", open_to=OpenTo.BROWSER)
    def save_plan(self, id: PlanId, wanted: SavePlan, /) -> PlanPage:
        """Replace the draft of a plan; an invalid text is refused with its line"""

    @operation(
        "POST",
        "/v1/tickets/{id}/split",
        open_to=OpenTo.ACTS,
        plain="budget",
        created=True,
        asks="Let a planner propose tickets in place of {what}?",
    )
    def split(self, id: TicketId, wanted: SplitTicket, /) -> PlanPage:
        """Plan several tickets in place of one"""

    @operation("GET", "/v1/epics/page", open_to=OpenTo.LOOKS)
    def epic(self, cwd: Folder, name: str) -> EpicPage:
        """An epic: its tickets, progress, money and plans"""

    @operation("POST", "/v1/epics/budget", open_to=OpenTo.BROWSER)
    def epic_budget(self, wanted: EpicBudget, /) -> EpicPage:
        """Limit what an epic may cost in all"""

    @operation("POST", "/v1/epics/gate", open_to=OpenTo.BROWSER)
    def epic_gate(self, wanted: EpicGate, /) -> EpicPage:
        """Set whether changes of an epic wait for the person"""

    @operation("POST", "/v1/epics/replan", open_to=OpenTo.ACTS, plain="cwd epic why budget", created=True)
    def replan(self, wanted: ReplanEpic, /) -> PlanPage:
        """Plan what is left of an epic; only what changes is proposed"""

    @operation(
        "POST",
        "/v1/epics/stop",
        open_to=OpenTo.ACTS,
        plain="cwd epic",
        asks="Stop every ticket of {what} that has not ended? Their work is kept.",
    )
    def stop_epic(self, wanted: NamedEpic, /) -> wire.tickets.Acted:
        """Stop every ticket of an epic that has not ended"""
