"""Standing agents: hire, list, interrupt, fire; the conversation with a leader; calls to Legion's tools."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from legion.wire.lazy import dataclass
from legion.wire.mail import MessageLine
from legion.wire.table import AgentName, Folder, OpenTo, Table, ToolName, operation
from legion.wire.ticket_fields import REQUIRED, described
from legion.wire.tickets import RunLine, UsageLine

if TYPE_CHECKING:
    from legion import wire


@dataclass(kw_only=True)
class HireAgent:
    """A new agent under the caller. What is left out is as much as the caller can give."""

    task: str = described(REQUIRED, argument="TASK", help="What it is there for.")
    cwd: str = described("", metavar="DIR", help="Work in this folder's project.")
    model: str = described("", metavar="M", help="Its model; agents that it hires get no better one.")
    driver: str = described("", metavar="D", help="Its program (`legion driver list`); else Claude Code.")
    tools: list[str] | None = described(None, metavar="A,B", help="The only tools that it has and may pass on.")
    role: str = described("", metavar="R", help="Its role in a few words; every turn starts with it.")
    name: str = described("", metavar="N", help="A unique name for people.")
    budget: float | None = described(None, metavar="USD", help="Dollars for itself and all agents below it.")
    headcount: int | None = described(None, help="How many agents may be below it at once.")
    depth: int | None = described(None, help="How many levels of agents may be below it.")
    plan: bool = described(False, help="It only reads until you approve its plan.")
    delegate: bool = described(False, help="It only leads: it uses Legion's tools alone, and passes the others on.")
    request: str = ""
    """The same request again gets the first answer."""


@dataclass(kw_only=True)
class _AgentFacts:
    id: str
    name: str
    parent: str
    model: str
    tools: list[str] | None
    budget: float | None
    """For itself and all below it, in dollars."""
    headcount: int | None
    depth: int | None
    driver: str = ""
    """The driver of its program; empty: Claude Code."""


@dataclass(kw_only=True)
class Hired(_AgentFacts):
    schema: str = "legion.hired/1"
    message: str
    notes: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class ClaimTicket:
    """A standing agent takes a ticket from the board."""

    ticket: int = described(0, argument="[N]", help="The ticket; the next one that is ready if left out.")
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
    id: str = described(REQUIRED, argument="ID", help="Its id, the start of it, or its name.")
    subtree: bool = described(False, help="Also fire all agents below it; else they report to its parent.")
    ask: bool = described(False, help="Let it finish its turn; it may refuse with a reason.")
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
class AgentLine(_AgentFacts):
    role: str
    project: str
    working: bool
    doing: str
    """Its activity, in short."""
    waiting: int
    """Messages in its mailbox."""
    hired_at: float
    left: float | None
    """Of its budget, neither spent nor reserved."""
    spent: float
    """By itself."""
    fired_at: float | None = None
    delegate: bool = False
    """It only leads, and uses none of the tools itself but Legion's."""
    offers: list[str] = field(default_factory=list)
    """The operations that the person may call for it now, by their names."""


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


@dataclass(kw_only=True)
class ReadConversation:
    cwd: str
    name: str = ""
    """A leader's name or id; empty: the first leader of the project, else the first agent that the person hired."""
    last: int = 50
    """How many messages."""


@dataclass(kw_only=True)
class Conversation:
    schema: str = "legion.conversation/1"
    leader: AgentLine | None
    """Null where the project has no leader; `hint` then says how to hire one."""
    messages: list[MessageLine]
    """Between the person and the leader, oldest first. Reading them marks them as read."""
    tokens: int = 0
    """The size of the leader's conversation with its model after the last turn; 0 where that is not known."""
    handover_tokens: int = 0
    """At this size it continues in a fresh conversation."""
    handovers: int = 0
    """How often it did."""
    approves: bool = False
    """It may approve plans in the person's place."""
    answers: bool = False
    """It may answer questions of agents."""
    hint: str = ""
    notes: list[str] = field(default_factory=list)
    """Open notes, each as a line."""


@dataclass(kw_only=True)
class ChatReply:
    """What `legion tell chat -m` prints with --json."""

    schema: str = "legion.chat/1"
    leader: str
    """Its name."""
    message: str
    """The id of the message that was sent."""
    replies: list[MessageLine]
    """What the leader answered in that turn; empty where it had nothing to say."""


@dataclass(kw_only=True)
class ToolCall:
    arguments: dict[str, Any] = field(default_factory=dict)
    """As the model gave them."""
    request: str = ""
    """The name of this call: the same again gets the first answer."""


@dataclass(kw_only=True)
class ToolAnswer:
    schema: str = "legion.tool/1"
    text: str = ""
    """What the model reads."""
    data: dict[str, Any] = field(default_factory=dict)
    """The same, for programs."""
    again: bool = False
    """Nothing to tell yet: send the same request again."""


@dataclass(kw_only=True)
class ToolLine:
    name: str
    description: str
    parameters: dict[str, Any]
    """As JSON Schema."""


@dataclass(kw_only=True)
class Tools:
    schema: str = "legion.tools/1"
    tools: list[ToolLine]
    """Those that the caller sees."""


class AgentRows(Table):
    """The caller is the one that acts."""

    @operation("GET", "/v1/agents", open_to=OpenTo.LOOKS | OpenTo.AGENTS)
    def agents(self, all: bool = False) -> AgentList:
        """Standing agents and their activity"""

    @operation("GET", "/v1/agents/{id}", open_to=OpenTo.LOOKS | OpenTo.AGENTS)
    def agent(self, id: AgentName, /) -> AgentPage:
        """Everything about one agent"""

    @operation("POST", "/v1/agents", open_to=OpenTo.BROWSER | OpenTo.AGENTS, created=True)
    def hire(self, wanted: HireAgent, /) -> Hired:
        """Hire an agent under the caller"""

    @operation(
        "POST",
        "/v1/agents/fire",
        open_to=OpenTo.ACTS | OpenTo.AGENTS,
        plain="id subtree ask request",
        asks="Fire {what}? Its work is kept, its unread mail is returned.",
    )
    def fire(self, wanted: FireAgent, /) -> Fired:
        """Fire an agent. Its work is saved, and its unread mail goes back to the senders

        With --ask the agent may refuse; without it, it is fired in any case.
        """

    @operation(
        "POST",
        "/v1/agents/interrupt",
        open_to=OpenTo.ACTS | OpenTo.AGENTS,
        plain="id text request",
        waits=True,
        asks="Interrupt {what}? It idles until it gets a message.",
    )
    def interrupt_agent(self, wanted: InterruptAgent, /) -> wire.mail.Sent:
        """Interrupt an agent, which continues with the message if there is one"""

    @operation("POST", "/v1/agents/claim", open_to=OpenTo.BROWSER | OpenTo.AGENTS)
    def claim(self, wanted: ClaimTicket, /) -> Claimed:
        """For a standing agent, in its own shell: take the next ready ticket from the board, or ticket N

        The agent's next turn starts with the briefing, in a tree at the landed code.
        """

    @operation("POST", "/v1/agents/submit", open_to=OpenTo.BROWSER | OpenTo.AGENTS)
    def submit(self, wanted: SubmitTicket, /) -> Claimed:
        """As a standing agent: submit the claimed ticket, or release it"""

    @operation("POST", "/v1/agents/plan", open_to=OpenTo.BROWSER | OpenTo.AGENTS)
    def propose_plan(self, wanted: Plan, /) -> wire.mail.Sent:
        """Propose a plan to the caller's parent"""

    @operation(
        "POST",
        "/v1/agents/verdict",
        open_to=OpenTo.ACTS | OpenTo.AGENTS,
        plain="agent approve why request",
        asks="Approve the plan of {what}? It may change files from then on.",
    )
    def decide_plan(self, wanted: PlanVerdict, /) -> wire.mail.Sent:
        """Approve or reject the plan of an agent below the caller"""

    @operation("POST", "/v1/leader/conversation", open_to=OpenTo.LOOKS, plain="cwd name last")
    def conversation(self, wanted: ReadConversation, /) -> Conversation:
        """The leader of a project, and its messages with the person, which are marked as read"""

    @operation("POST", "/v1/agents/delegate", open_to=OpenTo.ACTS | OpenTo.AGENTS, plain="id on")
    def delegate(self, wanted: SetDelegation, /) -> wire.projects.Done:
        """Set whether an agent below the caller only leads, without tools of its program"""

    @operation("GET", "/v1/tools", open_to=OpenTo.ALL)
    def tools(self) -> Tools:
        """The tools that the caller may use"""

    @operation("POST", "/v1/tools/{name}", open_to=OpenTo.ALL, waits=True)
    def use_tool(self, name: ToolName, wanted: ToolCall, /, cwd: Folder | None = None) -> ToolAnswer:
        """Use a tool; `again` in the answer means to send the same request again"""
