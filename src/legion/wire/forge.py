"""Forges, issues and pull requests."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from legion.wire.lazy import dataclass
from legion.wire.plans import NewPlan
from legion.wire.table import Folder, OpenTo, Table, TicketId, operation
from legion.wire.ticket_fields import REQUIRED, described

if TYPE_CHECKING:
    from legion import wire


@dataclass(kw_only=True)
class AddForge:
    """`kind` is `github` or `git`; `address` is OWNER/REPO or the URL of a git remote. One place for the token."""

    cwd: str
    kind: str = described(REQUIRED, argument="KIND", choices=("github", "git"), help="What is at the address.")
    address: str = described(REQUIRED, argument="OWNER/REPO|URL", help="Where it is.")
    url: str = described("", metavar="URL", help="The address of a GitHub Enterprise server.")
    branch: str = described("", metavar="NAME", help="The branch that work lands on.")
    label: str = described("legion:go", metavar="NAME", help="The label that starts an issue; '' for none.")
    milestone: str = described("", metavar="NAME", help="Start only issues of this milestone.")
    assignee: str = described("", metavar="LOGIN", help="Start only issues of this assignee.")
    app: str = described("", metavar="ID", help="A GitHub App; the key is its private key, a .pem file.")
    gh: bool = described(False, help="Use the token of the program gh.")
    key: str = described("", no_option=True, secret=True, help="The token; kept in a file that only you can read.")
    key_file: str = described("", metavar="PATH", help="A file of yours that holds the token.")
    key_env: str = described("", metavar="NAME", help="A variable of the daemon that holds the token.")
    key_command: str = described("", metavar="CMD", help="A program that prints the token; no shell runs it.")
    keyring: bool = described(False, help="Store the token in the system's keyring, or read it from there.")


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
    milestone: str = described("", metavar="NAME", help="All open issues of a milestone, in the order they name.")
    epic: str = described("", metavar="NAME", help="The epic of the tickets; the milestone's name if left out.")
    model: str = described("", metavar="M", help="The model the agent should use.")
    team: str = described("", metavar="NAME", help="The team that works on it.")
    briefing: str = described("", metavar="TEXT", help="What the agent should know; - reads it from stdin.")
    plan_first: bool = described(False, help="Its agent only reads until you approve its plan.")
    ask: bool = described(False, help="Its agent may ask: in `legion inbox` and on the issue.")
    dry_run: bool = described(False, help="Only show what would become a ticket.")


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
class PlanIssues(NewPlan):
    """Issues whose texts become one goal, below the person's own words."""

    issues: list[int]
    goal: str = ""


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
    method: str = described("merge", choices=("merge", "squash", "rebase"), help="How it is merged.")
    order: list[int] = field(default_factory=list)
    """Tickets, in the order in which they merge; empty: all, oldest first."""
    only: list[int] = field(default_factory=list)
    dry_run: bool = described(False, short="--plan", help="Only show what could merge, and what is missing.")
    no_checks: bool = described(False, help="Also where the forge has no checks configured.")
    skip_review: bool = described(False, help="Also without an approval. A request for changes still counts.")


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
        "DELETE", "/v1/forges", open_to=OpenTo.BROWSER, asks="Remove the forge of {what}? What is there stays there."
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
