# mypy: disable-error-code="empty-body"
"""The table of operations: everything that a client can ask the daemon for, one row each.

A row is a signature below `@operation(METHOD, PATH)`, and says it all:

    @operation("POST", "/v1/tickets/{id}/undo", open_to=OpenTo.ACTS)
    def undo(self, id: TicketId, /) -> wire.tickets.Acted:
        \"\"\"Revert a landed ticket by a new ticket\"\"\"

- The parameters before the slash are those of the path, then the request's body. Those behind it are the query.
- The types of body and answer are shapes of this folder. They are imported when the operation is used: a command does
  not pay for the shapes of the others. A parameter `X | None` may be left out of the request.
- `open_to` says who may call it. A row without it is open to the person's token alone.
- `plain` lists the fields of the body that a browser over a plain network may set, where the row is open to it.
- `waits` marks an operation that may block for seconds; it gets a thread of its own.
- The docstring is the summary in the OpenAPI document and in docs/api.md.

Three parts subclass Operations: the client sends each call (client/legion.py), the service maps each row to a use case
(service/operations.py), and the service for agents narrows some of them (service/entry/agent_rights.py). The routes
(api/routes.py), who may call them (api/guard.py), docs/api.md and SECURITY.md are made from OPERATIONS.
The rows of some areas are in files of their own (plans.py). wire/table.py makes a row of a signature.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from legion.wire.operations.attach import AttachOperations
from legion.wire.operations.controls import ControlOperations
from legion.wire.operations.conversations import ConversationOperations
from legion.wire.operations.forge import ForgeOperations
from legion.wire.operations.imports import ImportOperations
from legion.wire.operations.leader import LeaderOperations
from legion.wire.operations.machine_invitations import InvitationOperations
from legion.wire.operations.machines import MachineOperations
from legion.wire.operations.plans import PlanOperations
from legion.wire.operations.races import RaceOperations
from legion.wire.operations.sessions import SessionOperations
from legion.wire.operations.teams import TeamOperations
from legion.wire.table import (
    LONGEST_WAIT,
    AgentName,
    Count,
    Cursor,
    Folder,
    Hours,
    Number,
    OpenTo,
    QuestionId,
    RunId,
    Seconds,
    Text,
    TicketId,
    TicketIds,
    ToolName,
    operation,
    rows,
)

if TYPE_CHECKING:
    from legion import wire

PLAIN_TICKET = (
    "cwd tickets request dry_run title text context criteria plan key after after_keys checkpoint epic priority labels "
    "max_attempts plan_first budget"
)
"""The fields of a new ticket that choose no program: none that is run, nor what reads or proves its work."""


class Operations(
    PlanOperations,
    LeaderOperations,
    ControlOperations,
    ImportOperations,
    SessionOperations,
    AttachOperations,
    ConversationOperations,
    RaceOperations,
    TeamOperations,
    ForgeOperations,
    MachineOperations,
    InvitationOperations,
):
    """The rows of the daemon's own API."""

    # Projects

    @operation("POST", "/v1/projects", open_to=OpenTo.BROWSER)
    def add_project(self, wanted: wire.projects.AddProject, /) -> wire.projects.ProjectAdded:
        """Make a git repository a project"""

    @operation("POST", "/v1/shell")
    def use_shell(self, wanted: wire.projects.ShellVariables, /) -> wire.projects.Done:
        """Use PATH, proxies, certificates and version managers of the person's shell for a repository's programs"""

    @operation("DELETE", "/v1/projects", open_to=OpenTo.BROWSER)
    def remove_project(self, cwd: Folder) -> wire.projects.Done:
        """Remove a project; its repository stays as it is"""

    @operation("GET", "/v1/project/trustable", open_to=OpenTo.LOOKS)
    def trustable(self, cwd: Folder) -> wire.projects.Trustable:
        """The complete texts of legion.toml, roles and teams that can be trusted"""

    @operation("POST", "/v1/project/trust", open_to=OpenTo.BROWSER)
    def trust(self, wanted: wire.projects.Trust, /) -> wire.projects.Done:
        """Allow the commands of the texts with these hashes"""

    @operation("POST", "/v1/project/trial", open_to=OpenTo.ACTS, plain="cwd again")
    def try_checks(self, wanted: wire.projects.TryChecks, /) -> wire.projects.TrialPage:
        """Try the checks with broken code, in the background"""

    @operation("GET", "/v1/project/trial", open_to=OpenTo.LOOKS, waits=True)
    def trial(self, cwd: Folder, after: Number = 0, timeout: Seconds = 0.0) -> wire.projects.TrialPage:
        """The trial of the checks; waits for a step later than `after`, at most 25 s"""

    @operation("POST", "/v1/project/pause", open_to=OpenTo.ACTS, plain="cwd")
    def pause(self, where: wire.projects.Where, /) -> wire.tickets.Acted:
        """Start no new runs in the project"""

    @operation("POST", "/v1/project/resume", open_to=OpenTo.ACTS, plain="cwd")
    def resume(self, where: wire.projects.Where, /) -> wire.tickets.Acted:
        """Start runs in the project again"""

    @operation("POST", "/v1/project/stop", open_to=OpenTo.ACTS, plain="cwd")
    def stop_all(self, where: wire.projects.Where, /) -> wire.tickets.Acted:
        """Stop every ticket of the project that has not ended"""

    @operation("POST", "/v1/project/collect", open_to=OpenTo.BROWSER)
    def collect(self, where: wire.projects.Where, /) -> wire.projects.CollectResult:
        """Bring landed changes into the person's branch"""

    @operation("GET", "/v1/project/collect", open_to=OpenTo.LOOKS)
    def preview_collect(self, cwd: Folder) -> wire.projects.CollectResult:
        """What collect would bring; nothing is changed"""

    @operation("POST", "/v1/project/drop", open_to=OpenTo.ACTS, plain="cwd")
    def drop_ended(self, where: wire.projects.Where, /) -> wire.tickets.Acted:
        """Remove every ended ticket of the project from the board"""

    @operation("GET", "/v1/projects", open_to=OpenTo.LOOKS)
    def projects(self) -> wire.projects.ProjectList:
        """The projects of this daemon"""

    @operation("GET", "/v1/worktrees", open_to=OpenTo.LOOKS)
    def worktrees(self, cwd: Folder) -> wire.projects.WorktreeList:
        """The worktrees of the project's agents"""

    @operation("GET", "/v1/doctor", open_to=OpenTo.LOOKS)
    def doctor(self, cwd: Folder | None) -> wire.projects.Doctor:
        """Check this machine and the project"""

    @operation("GET", "/v1/config", open_to=OpenTo.LOOKS)
    def config(self, cwd: Folder | None) -> wire.projects.Config:
        """Every setting in force and where it comes from"""

    @operation("POST", "/v1/shutdown")
    def shutdown(self) -> wire.projects.Done:
        """End the daemon; running agents continue"""

    # The board

    @operation("GET", "/v1/status", open_to=OpenTo.LOOKS | OpenTo.AGENTS)
    def status(self, cwd: Folder | None, all: bool = False) -> wire.projects.Status:
        """The daemon, the project and its tickets"""

    @operation("GET", "/v1/graph", open_to=OpenTo.LOOKS | OpenTo.AGENTS)
    def graph(self, cwd: Folder) -> wire.projects.Graph:
        """Tickets, dependencies, waves and the critical path"""

    @operation("GET", "/v1/wait", open_to=OpenTo.LOOKS | OpenTo.AGENTS, waits=True)
    def wait(
        self, cwd: Folder | None, id: TicketIds = None, after_event: Number = 0, timeout: Seconds = LONGEST_WAIT
    ) -> wire.projects.WaitState:
        """Wait for the next event, or until all tickets are settled, at most 25 s"""

    @operation("GET", "/v1/history", open_to=OpenTo.LOOKS)
    def history(
        self,
        cwd: Folder | None,
        ticket: TicketId | None = None,
        run: RunId | None = None,
        after: Cursor = "",
        last: Count = 0,
        kinds: Text = "",
        since: Text = "",
        until: Text = "",
    ) -> wire.history.Events:
        """Events, with the rules that decided them"""

    @operation("GET", "/v1/stretch", open_to=OpenTo.LOOKS)
    def stretch(self, cwd: Folder, hours: Hours | None = None) -> wire.usage.WorkSummary:
        """Results since the person collected last"""

    @operation("GET", "/v1/usage", open_to=OpenTo.LOOKS)
    def usage(self, cwd: Folder | None, by: Text = "ticket", since: Text = "") -> wire.usage.UsageReport:
        """Tokens, money and time, by ticket, agent, role, model, day, epic, project or driver, from a day on"""

    # Tickets

    @operation("POST", "/v1/tickets", open_to=OpenTo.ACTS | OpenTo.AGENTS, plain=PLAIN_TICKET, created=True)
    def dispatch(self, wanted: wire.dispatch.Dispatch, /) -> wire.dispatch.Dispatched:
        """Create tickets, all or none"""

    @operation("GET", "/v1/tickets/{id}", open_to=OpenTo.LOOKS | OpenTo.AGENTS)
    def ticket(self, id: TicketId, /) -> wire.tickets.TicketPage:
        """Everything about one ticket"""

    @operation("GET", "/v1/tickets/{id}/log", open_to=OpenTo.LOOKS | OpenTo.AGENTS)
    def log(self, id: TicketId, /, run: RunId | None = None, offset: Number = 0) -> wire.tickets.LogText:
        """The output of its agent, from an offset on"""

    @operation("POST", "/v1/output", open_to=OpenTo.LOOKS, plain="cwd ticket seen", waits=True)
    def output(self, wanted: wire.live.FollowOutput, /, timeout: Seconds = LONGEST_WAIT) -> wire.live.LiveOutput:
        """Wait for new output of any agent at work, at most 25 s"""

    @operation("GET", "/v1/tickets/{id}/diff", open_to=OpenTo.LOOKS | OpenTo.AGENTS)
    def diff(self, id: TicketId, /, since: Text = "") -> wire.tickets.Diff:
        """Its change, also while the agent is working; with `since`, what changed after that moment of its history"""

    @operation("POST", "/v1/tickets/{id}/stop", open_to=OpenTo.ACTS | OpenTo.AGENTS, plain="feedback")
    def stop(self, id: TicketId, action: wire.tickets.Action | None = None, /) -> wire.tickets.Acted:
        """Stop it; its work is kept"""

    @operation("POST", "/v1/tickets/{id}/retry", open_to=OpenTo.ACTS | OpenTo.AGENTS, plain="feedback")
    def retry(self, id: TicketId, action: wire.tickets.Action | None = None, /) -> wire.tickets.Acted:
        """Retry it with a fresh count of attempts"""

    @operation("POST", "/v1/tickets/{id}/review", open_to=OpenTo.ACTS)
    def review(self, id: TicketId, /) -> wire.tickets.Acted:
        """Request an independent review of its change"""

    @operation("POST", "/v1/tickets/{id}/bounce", open_to=OpenTo.ACTS, plain="feedback")
    def bounce(self, id: TicketId, action: wire.tickets.Action | None = None, /) -> wire.tickets.Acted:
        """Send its change back to its agent with feedback"""

    @operation("POST", "/v1/tickets/{id}/drop", open_to=OpenTo.ACTS)
    def drop(self, id: TicketId, /) -> wire.tickets.Acted:
        """Remove it from the board"""

    @operation("POST", "/v1/tickets/{id}/pause", open_to=OpenTo.ACTS)
    def pause_ticket(self, id: TicketId, /) -> wire.tickets.Acted:
        """Park it until it is resumed"""

    @operation("POST", "/v1/tickets/{id}/resume", open_to=OpenTo.ACTS)
    def resume_ticket(self, id: TicketId, /) -> wire.tickets.Acted:
        """Resume it"""

    @operation("POST", "/v1/tickets/{id}/rewind", open_to=OpenTo.ACTS, plain="to feedback")
    def rewind(self, id: TicketId, wanted: wire.tickets.RewindTo, /) -> wire.tickets.Acted:
        """Reset its worktree and conversation to an earlier point and continue from there"""

    @operation("POST", "/v1/tickets/{id}/undo", open_to=OpenTo.ACTS)
    def undo(self, id: TicketId, /) -> wire.tickets.Acted:
        """Revert a landed ticket by a new ticket"""

    @operation("POST", "/v1/tickets/{id}/tell", open_to=OpenTo.ACTS, plain="text", waits=True)
    def tell(self, id: TicketId, message: wire.questions.MessageText, /) -> wire.questions.Delivered:
        """Send a message to its running agent; wait at most 30 s for its delivery"""

    @operation("POST", "/v1/tickets/{id}/interrupt", open_to=OpenTo.ACTS, plain="text", waits=True)
    def interrupt(self, id: TicketId, message: wire.questions.MessageText | None = None, /) -> wire.questions.Delivered:
        """Interrupt its agent, which continues with the message; without one the ticket is paused"""

    @operation("GET", "/v1/tickets/{id}/cassette", open_to=OpenTo.LOOKS)
    def cassette(self, id: TicketId, /, name: str = "") -> wire.tickets.Cassette:
        """The model's replies in recorded runs, as scripts to replay"""

    @operation("POST", "/v1/tickets/recording", open_to=OpenTo.BROWSER)
    def switch_recording(self, wanted: wire.tickets.SetRecording, /) -> wire.projects.Done:
        """Record new runs, or stop recording"""

    # Questions

    @operation("GET", "/v1/inbox", open_to=OpenTo.LOOKS | OpenTo.AGENTS)
    def inbox(self) -> wire.questions.Inbox:
        """Questions that wait for the person"""

    @operation("POST", "/v1/questions/{id}/answer", open_to=OpenTo.ACTS | OpenTo.AGENTS, plain="choice allowed why")
    def answer(self, id: QuestionId, given: wire.questions.AnswerQuestion, /) -> wire.questions.Answered:
        """Answer a question"""

    # Agents and mail: the caller is the one that acts

    @operation("GET", "/v1/agents", open_to=OpenTo.LOOKS | OpenTo.AGENTS)
    def agents(self, all: bool = False) -> wire.agents.AgentList:
        """Standing agents and their activity"""

    @operation("GET", "/v1/agents/{id}", open_to=OpenTo.LOOKS | OpenTo.AGENTS)
    def agent(self, id: AgentName, /) -> wire.agents.AgentPage:
        """Everything about one agent"""

    @operation("POST", "/v1/agents", open_to=OpenTo.BROWSER | OpenTo.AGENTS, created=True)
    def hire(self, wanted: wire.agents.HireAgent, /) -> wire.agents.Hired:
        """Hire an agent under the caller"""

    @operation("POST", "/v1/agents/fire", open_to=OpenTo.ACTS | OpenTo.AGENTS, plain="id subtree ask request")
    def fire(self, wanted: wire.agents.FireAgent, /) -> wire.agents.Fired:
        """Fire an agent: its work is saved, its unread mail is returned"""

    @operation("POST", "/v1/agents/interrupt", open_to=OpenTo.ACTS | OpenTo.AGENTS, plain="id text request", waits=True)
    def interrupt_agent(self, wanted: wire.agents.InterruptAgent, /) -> wire.mail.Sent:
        """Interrupt an agent, which continues with the message if there is one"""

    @operation(
        "POST", "/v1/agents/tell", open_to=OpenTo.ACTS | OpenTo.AGENTS, plain="to text now request reply_to", waits=True
    )
    def tell_agent(self, letter: wire.mail.NewMessage, /) -> wire.mail.Sent:
        """Send a message to an agent or to the person"""

    @operation("POST", "/v1/agents/broadcast", open_to=OpenTo.ACTS | OpenTo.AGENTS, plain="text subtree request")
    def broadcast(self, wanted: wire.mail.Broadcast, /) -> wire.mail.Sent:
        """Send a message to every agent below the caller"""

    @operation("POST", "/v1/agents/claim", open_to=OpenTo.BROWSER | OpenTo.AGENTS)
    def claim(self, wanted: wire.agents.ClaimTicket, /) -> wire.agents.Claimed:
        """As a standing agent: claim a ticket from the board"""

    @operation("POST", "/v1/agents/submit", open_to=OpenTo.BROWSER | OpenTo.AGENTS)
    def submit(self, wanted: wire.agents.SubmitTicket, /) -> wire.agents.Claimed:
        """As a standing agent: submit the claimed ticket, or release it"""

    @operation("POST", "/v1/agents/plan", open_to=OpenTo.BROWSER | OpenTo.AGENTS)
    def propose_plan(self, wanted: wire.agents.Plan, /) -> wire.mail.Sent:
        """Propose a plan to the caller's parent"""

    @operation("POST", "/v1/agents/verdict", open_to=OpenTo.ACTS | OpenTo.AGENTS, plain="agent approve why request")
    def decide_plan(self, wanted: wire.agents.PlanVerdict, /) -> wire.mail.Sent:
        """Approve or reject the plan of an agent below the caller"""

    @operation("POST", "/v1/mail", open_to=OpenTo.ACTS | OpenTo.AGENTS, plain="agent dead all")
    def mail(self, wanted: wire.mail.ReadMail, /) -> wire.mail.Mail:
        """Read mail; the person's own is marked as read"""

    # Providers of models. A key travels towards the daemon only.

    @operation("GET", "/v1/providers", open_to=OpenTo.LOOKS)
    def providers(self) -> wire.providers.Providers:
        """All providers, the source of each key, and their limits"""

    @operation("GET", "/v1/drivers", open_to=OpenTo.LOOKS)
    def drivers(self) -> wire.drivers.Drivers:
        """All drivers: which programs they start, what they can do, and whether they were tried"""

    @operation("GET", "/v1/drivers/{name}", open_to=OpenTo.LOOKS, waits=True)
    def driver(self, name: Text, /) -> wire.drivers.DriverPage:
        """One driver, and whether its program is installed"""

    @operation("POST", "/v1/drivers", open_to=OpenTo.BROWSER)
    def add_driver(self, wanted: wire.drivers.AddDriver, /) -> wire.projects.Done:
        """Add an agent program, or change a shipped one"""

    @operation("POST", "/v1/drivers/{name}/remove", open_to=OpenTo.BROWSER)
    def remove_driver(self, name: Text, /) -> wire.projects.Done:
        """Remove your own description of an agent program"""

    @operation("POST", "/v1/providers", open_to=OpenTo.BROWSER)
    def add_provider(self, wanted: wire.providers.AddProvider, /) -> wire.projects.Done:
        """Add a provider, or change one"""

    @operation("POST", "/v1/providers/remove", open_to=OpenTo.BROWSER)
    def remove_provider(self, wanted: wire.providers.RemoveProvider, /) -> wire.projects.Done:
        """Remove a provider and the key that was stored for it"""

    @operation("POST", "/v1/providers/login", open_to=OpenTo.BROWSER, waits=True)
    def begin_login(self, wanted: wire.providers.BeginLogin, /) -> wire.providers.LoginBegun:
        """Start a login that a person confirms in a browser"""

    @operation("POST", "/v1/providers/login/finish", open_to=OpenTo.BROWSER, waits=True)
    def finish_login(self, wanted: wire.providers.FinishLogin, /) -> wire.providers.LoginState:
        """Wait a while for the confirmation, and return whether it came"""

    @operation("GET", "/v1/providers/routes", open_to=OpenTo.LOOKS)
    def routes(self) -> wire.providers.Routes:
        """Routes: which models are requested from another provider"""

    @operation("POST", "/v1/providers/routes", open_to=OpenTo.BROWSER)
    def set_route(self, wanted: wire.providers.SetRoute, /) -> wire.projects.Done:
        """Set a route"""

    @operation("POST", "/v1/providers/routes/remove", open_to=OpenTo.BROWSER)
    def remove_route(self, wanted: wire.providers.RemoveRoute, /) -> wire.projects.Done:
        """Remove a route"""

    @operation("GET", "/v1/providers/models", open_to=OpenTo.LOOKS, waits=True)
    def models(self, name: str = "") -> wire.providers.Models:
        """The models of the providers, requested now"""

    @operation("POST", "/v1/providers/test", open_to=OpenTo.BROWSER, waits=True)
    def try_provider(self, wanted: wire.providers.TryProvider, /) -> wire.providers.ProviderAnswer:
        """Send one small request to a provider"""

    # The page: the browsers that may use it, and its addresses

    @operation("POST", "/v1/web/offers", created=True)
    def offer_device(self, wanted: wire.web.OfferDevice, /) -> wire.web.DeviceOffer:
        """A code that lets one browser in, once and within two minutes"""

    @operation("GET", "/v1/web/devices", open_to=OpenTo.LOOKS)
    def devices(self) -> wire.web.Devices:
        """The browsers that are let in"""

    @operation("POST", "/v1/web/devices/revoke", open_to=OpenTo.BROWSER)
    def revoke_device(self, wanted: wire.web.RevokeDevice, /) -> wire.projects.Done:
        """Shut one browser out, or all"""

    @operation("GET", "/v1/web/addresses", open_to=OpenTo.LOOKS)
    def web_addresses(self) -> wire.web.WebAddresses:
        """The addresses of the page"""

    @operation("POST", "/v1/web/addresses", waits=True)
    def open_web(self, wanted: wire.web.OpenWeb, /) -> wire.web.WebAddresses:
        """Serve the page under one more address, until it is closed"""

    @operation("POST", "/v1/web/addresses/close", waits=True)
    def close_web(self) -> wire.web.WebAddresses:
        """Serve the page on this machine only"""

    # Legion's tools

    @operation("GET", "/v1/tools", open_to=OpenTo.ALL)
    def tools(self) -> wire.tools.Tools:
        """The tools that the caller may use"""

    @operation("POST", "/v1/tools/{name}", open_to=OpenTo.ALL, waits=True)
    def use_tool(
        self, name: ToolName, wanted: wire.tools.ToolCall, /, cwd: Folder | None = None
    ) -> wire.tools.ToolAnswer:
        """Use a tool; `again` in the answer means to send the same request again"""


OPERATIONS = rows(Operations)
