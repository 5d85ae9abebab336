"""Shapes of requests and answers about forges, issues and pull requests."""

from __future__ import annotations

from dataclasses import field

from legion.wire.lazy import dataclass


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
