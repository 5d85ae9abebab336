"""Shapes of requests and answers about standing agents: hire, list, interrupt, fire."""

from __future__ import annotations

from dataclasses import field

from legion.wire.lazy import dataclass
from legion.wire.mail import MessageLine
from legion.wire.tickets import RunLine, UsageLine


@dataclass(kw_only=True)
class HireAgent:
    """A new agent under the caller. What is left out is as much as the caller can give."""

    task: str
    cwd: str = ""
    """Any folder inside the project that it works in; an agent hires in its own."""
    model: str = ""
    tools: list[str] | None = None
    role: str = ""
    name: str = ""
    budget: float | None = None
    headcount: int | None = None
    depth: int | None = None
    plan: bool = False
    """It only reads until a plan of its is approved."""
    delegate: bool = False
    """It only leads: it has Legion's tools alone, and can give those in `tools`."""
    driver: str = ""
    """The driver of its program; empty: Claude Code."""
    request: str = ""
    """The same request again gets the first answer."""


@dataclass(kw_only=True)
class Hired:
    schema: str = "legion.hired/1"
    id: str
    name: str
    parent: str
    model: str
    tools: list[str] | None
    budget: float | None
    headcount: int | None
    depth: int | None
    message: str
    notes: list[str] = field(default_factory=list)
    driver: str = ""


@dataclass(kw_only=True)
class ClaimTicket:
    """A standing agent takes a ticket from the board."""

    ticket: int = 0
    """0: the next one that is ready."""
    request: str = ""


@dataclass(kw_only=True)
class SubmitTicket:
    """Submits the ticket that the agent has claimed, or releases it to the board."""

    let_go: bool = False
    why: str = ""
    request: str = ""


@dataclass(kw_only=True)
class Claimed:
    schema: str = "legion.claimed/1"
    ticket: int | None
    """Null where none is ready."""
    title: str
    message: str


@dataclass(kw_only=True)
class Plan:
    """An agent's plan, for its parent to approve."""

    text: str
    request: str = ""


@dataclass(kw_only=True)
class PlanVerdict:
    agent: str
    approve: bool
    why: str = ""
    request: str = ""


@dataclass(kw_only=True)
class FireAgent:
    id: str
    subtree: bool = False
    """All agents below it too; else they report to its parent."""
    ask: bool = False
    """Ask it to leave: it finishes its turn and goes, or refuses with a reason."""
    request: str = ""


@dataclass(kw_only=True)
class Fired:
    schema: str = "legion.fired/1"
    fired: list[str]
    adopted: list[str]
    """Agents that have a new parent now."""
    returned: int
    """Messages that were returned at once; those that its last turn did not read follow when it has ended."""
    message: str


@dataclass(kw_only=True)
class SetDelegation:
    id: str
    on: bool
    """It only leads, from its next turn on; else it uses the tools of its program again."""


@dataclass(kw_only=True)
class InterruptAgent:
    id: str
    text: str = ""
    """It continues with this; empty: it idles."""
    request: str = ""


@dataclass(kw_only=True)
class AgentLine:
    id: str
    name: str
    role: str
    parent: str
    project: str
    model: str
    working: bool
    doing: str
    """Its activity, in short."""
    waiting: int
    """Messages in its mailbox."""
    hired_at: float
    tools: list[str] | None
    budget: float | None
    """For itself and all below it, in dollars."""
    left: float | None
    """Of its budget, neither spent nor reserved."""
    headcount: int | None
    depth: int | None
    spent: float
    """By itself."""
    fired_at: float | None = None
    delegate: bool = False
    """It only leads, and uses none of the tools itself but Legion's."""
    driver: str = ""
    """The driver of its program; empty: Claude Code."""


@dataclass(kw_only=True)
class AgentList:
    schema: str = "legion.agents/1"
    you: str
    agents: list[AgentLine]
    """Those that the caller can see, in the order of their hire."""


@dataclass(kw_only=True)
class AgentPage:
    schema: str = "legion.agent/1"
    agent: AgentLine
    task: str
    worktree: str | None
    reports: list[AgentLine]
    turns: list[RunLine]
    """The last ones, oldest first."""
    mail: list[MessageLine]
    """What waits for it."""
    usage: UsageLine | None = None


@dataclass(kw_only=True)
class Seat:
    """The caller's place in the tree of agents: part of `status`."""

    you: str
    name: str
    working: bool
    mail: list[MessageLine]
    """What waits for the caller."""
    reports: list[AgentLine]
