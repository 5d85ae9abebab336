"""Forges, issues and pull requests."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from legion.wire.lazy import dataclass
from legion.wire.table import Folder, OpenTo, Table, TicketId, operation

if TYPE_CHECKING:
    from legion import wire


@dataclass(kw_only=True)
class AddForge:
    """`kind` is `github` or `git`; `address` is OWNER/REPO or the URL of a git remote. One place for the token."""

    cwd: str
    kind: str
    address: str
    url: str = ""
    """The address of a GitHub Enterprise server; empty: github.com."""
    branch: str = ""
    """The branch that work lands on; empty: the project's own where the forge has it, else the forge's default."""
    label: str = "legion:go"
    """The label that makes an issue a ticket; empty: none does."""
    milestone: str = ""
    assignee: str = ""
    key: str = ""
    key_file: str = ""
    key_env: str = ""
    key_command: str = ""
    keyring: bool = False
    gh: bool = False
    """The token is the one of the program `gh`."""
    app: str = ""
    """The id of a GitHub App. The key, or its file, is then the app's private key in PEM form."""


@dataclass(kw_only=True)
class ForgeLine:
    project: str
    kind: str
    name: str
    url: str
    branch: str
    target: str
    """The project's `landing.target`."""
    login: str
    key: str
    """Where the token is; never the token."""
    label: str
    problem: str
    problem_since: float | None
    wait_until: float | None
    synced_at: float | None
    pulls: int
    """Pull requests that are open or about to be."""
    issues: int
    """Issues with a ticket."""


@dataclass(kw_only=True)
class Forges:
    schema: str = "legion.forges/1"
    forges: list[ForgeLine]


@dataclass(kw_only=True)
class ForgeTested:
    schema: str = "legion.forgetested/1"
    ok: bool
    message: str
    notes: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class HookAddress:
    """What to enter at the forge, so that it reports changes at once."""

    schema: str = "legion.forgehook/1"
    path: str
    secret: str
    message: str


@dataclass(kw_only=True)
class AssignIssues:
    cwd: str
    issues: list[int]
    model: str = ""
    team: str = ""
    briefing: str = ""
    plan_first: bool = False
    ask: bool = False
    """Whether its agent may ask; its questions stand on the issue, too."""
    dry_run: bool = False
    epic: str = ""
    milestone: str = ""
    """All open issues of this milestone, instead of `issues`, in the order that they name; the epic is its title."""


@dataclass(kw_only=True)
class AssignedLine:
    issue: int
    title: str
    ticket: int | None
    branch: str
    message: str


@dataclass(kw_only=True)
class Assigned:
    schema: str = "legion.assigned/1"
    issues: list[AssignedLine]


@dataclass(kw_only=True)
class PlanIssues:
    """Issues whose texts become one goal, below the person's own words."""

    cwd: str
    issues: list[int]
    goal: str = ""
    team: str = ""
    model: str = ""
    budget: float | None = None
    questions: bool = False
    epic: str = ""
    spec: bool = False
    keep_docs: bool = False
    request: str = ""


@dataclass(kw_only=True)
class PullLine:
    """The pull request of a ticket."""

    ticket: int
    title: str
    stage: str
    """offered, open, away (its agent works on it), merged, landed or closed."""
    number: int | None
    url: str
    branch: str
    commit: str
    ci: str
    """none, pending, green or red."""
    review: str
    """approved, changes, or empty."""
    note: str
    merges: str
    """What happens or is missing before it can merge; empty where nothing is known."""
    offers: list[str] = field(default_factory=list)
    """The operations that may be called for it now, by their names."""


@dataclass(kw_only=True)
class Pulls:
    schema: str = "legion.pulls/1"
    pulls: list[PullLine]
    notes: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class MergePulls:
    cwd: str
    method: str = "merge"
    """merge, squash or rebase."""
    order: list[int] = field(default_factory=list)
    """Tickets, in the order in which they merge; empty: all, oldest first."""
    only: list[int] = field(default_factory=list)
    dry_run: bool = False
    no_checks: bool = False
    skip_review: bool = False


@dataclass(kw_only=True)
class TriedByHand:
    """What came out when a person tried a change. Without `passed`, nothing is recorded."""

    passed: bool | None = None
    reason: str = ""


@dataclass(kw_only=True)
class TryIt:
    """How to try a change by hand."""

    schema: str = "legion.try/1"
    ticket: int
    commands: list[str]
    message: str


class ForgeRows(Table):
    """All of them are the person's alone: no agent reaches a forge."""

    @operation("GET", "/v1/forges", open_to=OpenTo.LOOKS)
    def forges(self) -> Forges:
        """List the forges of all projects, and how the last look at each ended"""

    @operation("POST", "/v1/forges", open_to=OpenTo.BROWSER, waits=True)
    def add_forge(self, wanted: AddForge, /) -> wire.projects.Done:
        """Add the project's forge, or change it"""

    @operation(
        "DELETE",
        "/v1/forges",
        open_to=OpenTo.BROWSER,
        asks="Remove the forge of {what}? What is there stays there.",
    )
    def remove_forge(self, cwd: Folder) -> wire.projects.Done:
        """Disconnect this project from its forge, and delete the token that Legion kept"""

    @operation("POST", "/v1/forges/test", open_to=OpenTo.BROWSER, waits=True)
    def try_forge(self, where: wire.projects.Where, /) -> ForgeTested:
        """Ask the forge who Legion is there and what it may do. Ends with 1 if it fails"""

    @operation("POST", "/v1/forges/sync", open_to=OpenTo.BROWSER, waits=True)
    def sync_forge(self, where: wire.projects.Where, /) -> wire.projects.Done:
        """Look at the project's forge now, without waiting for the next look"""

    @operation("POST", "/v1/forges/secret", open_to=OpenTo.BROWSER)
    def forge_hook(self, where: wire.projects.Where, /) -> HookAddress:
        """Print the path and the secret to enter at the forge, so that it reports changes at once"""

    @operation("POST", "/v1/forges/assign", open_to=OpenTo.BROWSER, waits=True)
    def assign(self, wanted: AssignIssues, /) -> Assigned:
        """Make tickets of issues, or only show which"""

    @operation("POST", "/v1/forges/plan", open_to=OpenTo.BROWSER, waits=True, created=True)
    def plan_issues(self, wanted: PlanIssues, /) -> wire.plans.PlanPage:
        """Have a planner propose tickets for issues"""

    @operation("GET", "/v1/pulls", open_to=OpenTo.LOOKS)
    def pulls(self, cwd: Folder) -> Pulls:
        """The pull requests of the project's tickets that have not landed"""

    @operation("POST", "/v1/tickets/{id}/pull", open_to=OpenTo.BROWSER, waits=True)
    def pull(self, id: TicketId, /) -> Pulls:
        """Bring the pull request of a ticket up to date, and show it"""

    @operation("POST", "/v1/pulls/merge", open_to=OpenTo.BROWSER, waits=True)
    def merge_pulls(self, wanted: MergePulls, /) -> Pulls:
        """Merge pull requests that are approved and green, or only show which"""

    @operation("POST", "/v1/tickets/{id}/tried", open_to=OpenTo.BROWSER)
    def tried(self, id: TicketId, wanted: TriedByHand, /) -> TryIt:
        """How to try a ticket's change by hand; or record what came out"""
