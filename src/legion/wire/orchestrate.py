"""The operations and shapes of legion_cc's orchestrate API and of claude-orchestra, in those programs' words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from legion.wire.table import Folder, OpenTo, Table, TicketId, operation

if TYPE_CHECKING:
    from legion import wire


@dataclass(kw_only=True)
class OldSubmit:
    title: str = ""
    ticket: str
    context: str | None = None
    criteria: str | None = None
    team_mode: object = None
    """The name of a team; {"custom": NAME} means the same."""
    max_iterations: int | None = None
    blocked_by: list[int] | None = None
    structure_plan: str | None = None
    is_checkpoint: bool = False


@dataclass(kw_only=True)
class OldSubmitted:
    ticket_id: int


@dataclass(kw_only=True)
class OldDispatch:
    ticket: str
    worker_id: int | None = None
    """Accepted and without effect: any free agent takes the next ticket."""


@dataclass(kw_only=True)
class OldDispatched:
    ticket_id: int
    status: str = "dispatched"


@dataclass(kw_only=True)
class _OldTicket:
    id: int
    title: str
    status: str
    """queued, working, done or error."""
    merge_status: str
    """pending, merged, conflict or skipped."""
    summary: str
    is_checkpoint: bool


@dataclass(kw_only=True)
class OldSnapshot(_OldTicket):
    prompt: str
    context: str
    criteria: str
    assigned_worker: int | None
    """The agent of ticket 7 is worker 7."""
    team_mode: str
    iteration: int
    max_iterations: int
    feedback: str
    elapsed_secs: int
    base_commit: str | None
    blocked_by: list[int]
    structure_plan: str


@dataclass(kw_only=True)
class OldQueue:
    tickets: list[OldSnapshot]
    total: int
    queued: int
    working: int
    done: int
    error: int


@dataclass(kw_only=True)
class OldReport:
    worker_id: int
    status: str
    summary: str = ""


@dataclass(kw_only=True)
class OldStop:
    ticket_id: int | None = None
    worker_id: int | None = None


@dataclass(kw_only=True)
class OldStatus:
    status: str


@dataclass(kw_only=True)
class OldFileChange:
    path: str
    status: str
    additions: int
    deletions: int


@dataclass(kw_only=True)
class Dependency(_OldTicket):
    diff_summary: list[OldFileChange]
    log_tail: str


@dataclass(kw_only=True)
class Dependencies:
    ticket_id: int
    dependencies: list[Dependency] = field(default_factory=list)


@dataclass(kw_only=True)
class _OldTarget:
    target_url: str | None = None
    api_format: str | None = None
    model: str | None = None


@dataclass(kw_only=True)
class OldControlStatus(_OldTarget):
    """The provider that agents without a route use."""

    configured: bool


@dataclass(kw_only=True)
class OldControlConfig(_OldTarget):
    api_key: str | None = None


@dataclass(kw_only=True)
class OldOk:
    ok: bool = True


@dataclass(kw_only=True)
class OldProvider:
    id: str
    name: str
    base_url: str
    api_format: str
    models: list[str] | None
    is_default: bool


@dataclass(kw_only=True)
class OldProviders:
    """Sent as the bare list."""

    providers: list[OldProvider]


class OrchestrateOperations(Table):
    """The rows. Which project is meant, `cwd` says; a person with one project may leave it out."""

    @operation("POST", "/legion/orchestrate/submit", open_to=OpenTo.AGENTS)
    def submit(self, wanted: wire.orchestrate.OldSubmit, /, cwd: Folder | None = None) -> wire.orchestrate.OldSubmitted:
        """Create a ticket"""

    @operation("POST", "/legion/orchestrate/dispatch", open_to=OpenTo.AGENTS)
    def dispatch(
        self, wanted: wire.orchestrate.OldDispatch, /, cwd: Folder | None = None
    ) -> wire.orchestrate.OldDispatched:
        """Create a ticket from its text alone"""

    @operation("GET", "/legion/orchestrate/status", open_to=OpenTo.AGENTS)
    def status(self, cwd: Folder | None = None) -> wire.orchestrate.OldQueue:
        """The project's tickets"""

    @operation("POST", "/legion/orchestrate/report", open_to=OpenTo.AGENTS)
    def report(self, wanted: wire.orchestrate.OldReport, /, cwd: Folder | None = None) -> wire.orchestrate.OldStatus:
        """Record a report about a ticket at work"""

    @operation("POST", "/legion/orchestrate/stop", open_to=OpenTo.AGENTS)
    def stop(self, wanted: wire.orchestrate.OldStop, /, cwd: Folder | None = None) -> wire.orchestrate.OldStatus:
        """Stop a ticket"""

    @operation("POST", "/legion/orchestrate/stop-all", open_to=OpenTo.AGENTS)
    def stop_all(self, cwd: Folder | None = None) -> wire.orchestrate.OldStatus:
        """Stop every ticket that the caller may stop"""

    @operation("GET", "/legion/orchestrate/deps", open_to=OpenTo.AGENTS)
    def deps(self, ticket_id: TicketId | None = None, cwd: Folder | None = None) -> wire.orchestrate.Dependencies:
        """The tickets that a ticket comes after"""

    # The control API, which legion_cc serves for each pane. It decides where a key is sent: the person's alone.

    @operation("GET", "/legion/status")
    def control_status(self) -> wire.orchestrate.OldControlStatus:
        """The default provider, as legion_cc shows the one of a pane"""

    @operation("POST", "/legion/config")
    def control_config(self, wanted: wire.orchestrate.OldControlConfig, /) -> wire.orchestrate.OldOk:
        """Change the default provider, or add one; what is left out stays"""

    @operation("GET", "/legion/providers")
    def control_providers(self) -> wire.orchestrate.OldProviders:
        """All providers, without their keys"""


# The shapes of claude-orchestra's API. Names and meanings are that program's.


@dataclass(kw_only=True)
class OrchestraAgent:
    agent_id: str
    """Eight hexadecimal digits: the number of the ticket."""
    session_id: str
    worktree_path: str | None
    task: str
    status: str
    """pending, running, completed, failed, stale or paused."""
    started_at: str | None
    last_heartbeat: str | None
    progress: int
    """Percent, by the state of the ticket."""
    current_activity: str | None
    error_message: str | None
    result: str | None


@dataclass(kw_only=True)
class OrchestraStatus:
    total: int
    running: int
    completed: int
    failed: int
    stale: int
    agents: list[OrchestraAgent] = field(default_factory=list)


@dataclass(kw_only=True)
class OrchestraSession:
    session_id: str
    project_path: str
    modified_at: str
    message_count: int
    last_prompt: str


@dataclass(kw_only=True)
class OrchestraWorktree:
    branch: str
    task: str
    path: str
    is_active: bool


@dataclass(kw_only=True)
class SpawnTasks:
    tasks: list[str]
    parallel: int | None = None
    """How many agents may work at once in the project; left out: as many as before."""
    use_worktrees: bool = True


@dataclass(kw_only=True)
class SpawnedAgent:
    agent_id: str
    task: str
    worktree: str


@dataclass(kw_only=True)
class Spawned:
    spawned: int
    agents: list[SpawnedAgent]


@dataclass(kw_only=True)
class OrchestraDone:
    success: bool
    error: str | None = None
    """Why not."""


@dataclass(kw_only=True)
class OrchestraCleaned:
    cleaned: int
