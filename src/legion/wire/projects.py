"""Shapes of requests and answers about projects, the board and the daemon."""

from __future__ import annotations

from dataclasses import field

from legion.domain import shell
from legion.wire.agents import Seat
from legion.wire.lazy import dataclass
from legion.wire.tickets import TicketLine, UsageLine


@dataclass(kw_only=True)
class TryChecks:
    """`legion init` and `legion doctor --try`: try the checks of the project with broken code, in the background."""

    cwd: str
    again: bool = False
    """Also where the result for these checks is known."""


@dataclass(kw_only=True)
class TrialCheck:
    """How one check did in the trial."""

    name: str
    command: str
    ok: bool
    """It passes on the code as it is."""
    seconds: float
    """How long that took."""
    tests: int | None
    """How many ran; null where the runner does not tell."""
    sight: str
    """sees, blind, elsewhere, red base or nothing to break."""
    words: str = ""
    """The end of its output where it does not pass."""


@dataclass(kw_only=True)
class TrialPage:
    """The last trial of a project's checks, or the one that runs."""

    schema: str = "legion.trial/1"
    state: str
    """off, untrusted, due, running, failed (it could not run) or done."""
    number: int
    """Grows with each step of any trial: the next request may wait for a greater one."""
    steps: list[str] = field(default_factory=list)
    """While it runs: the steps so far; the last one runs now."""
    lines: list[str] = field(default_factory=list)
    """What was found, for a person."""
    sees: str = "unknown"
    """yes, no or unknown: whether the checks go red when the code is broken."""
    doubts: list[str] = field(default_factory=list)
    """Why changes do not land on these checks before a person trusts them."""
    remedy: str = ""
    """What to do about the doubts."""
    question: int | None = None
    """The open question about the doubts: `legion inbox`."""
    trusted: bool = False
    """A person trusts the checks all the same."""
    setup_seconds: float | None = None
    """Null where there is no [setup]."""
    setup_fault: str = ""
    """The end of its output where it failed."""
    checks: list[TrialCheck] = field(default_factory=list)
    """One per check."""
    commit: str = ""
    """The commit that was tried."""
    trouble: str = ""
    """Why it could not run."""


@dataclass(kw_only=True)
class AddProject:
    """`legion init`: register the repository at `path`; write a legion.toml where there is none and trust it."""

    path: str
    dry_run: bool = False


SHELL_NAMES = shell.NAMES
"""The variables that a client reports."""


@dataclass(kw_only=True)
class ShellVariables:
    """Variables of the person's shell, for the programs of the repository at `path`."""

    path: str
    variables: dict[str, str]


@dataclass(kw_only=True)
class ProjectAdded:
    schema: str = "legion.project/1"
    name: str
    root: str
    branch: str
    hub: str
    worktrees: str
    config_file: str
    config_text: str
    wrote_config: bool
    trusted: bool
    dry_run: bool
    notes: list[str] = field(default_factory=list)
    setup: str = ""
    """The command that prepares a worktree."""
    checks: dict[str, str] = field(default_factory=dict)
    """By name: the command that must pass before a change lands."""
    trial: TrialPage | None = None
    """Of its checks, where the command has waited for it."""


@dataclass(kw_only=True)
class Where:
    """Names a project by any folder inside it."""

    cwd: str


@dataclass(kw_only=True)
class Done:
    schema: str = "legion.done/1"
    message: str
    notes: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class TrustText:
    """The complete text of a legion.toml, a role or a team, which a person reads before they trust it."""

    place: str
    """landed or checkout."""
    file: str
    hash: str
    text: str
    trusted: bool
    difference: str = ""
    """What changed since the last text of this file that was trusted, as a unified diff; empty where there is none."""


@dataclass(kw_only=True)
class Trustable:
    schema: str = "legion.trustable/1"
    texts: list[TrustText]


@dataclass(kw_only=True)
class Trust:
    """`legion trust`: exactly the texts with these hashes, which the person has seen."""

    cwd: str
    hashes: list[str]


@dataclass(kw_only=True)
class ProjectLine:
    name: str
    root: str
    branch: str
    paused: bool
    trusted: bool
    target: str
    """The commit of the integration branch."""
    baseline: str
    """green, red, unknown or none (no checks)."""
    ahead: int
    """Landed commits that the person's branch lacks: `legion collect` brings them."""
    collectable: bool = True
    """Whether the person's own commits do not stand in the way of `legion collect`."""
    open: int = 0
    """Tickets that have not ended."""
    notes: list[str] = field(default_factory=list)
    session: str = ""
    """The session; empty for the default one."""
    frozen: bool = False
    """Paused with all others by `legion pause --all`."""


@dataclass(kw_only=True)
class ProjectList:
    schema: str = "legion.projects/1"
    projects: list[ProjectLine]


@dataclass(kw_only=True)
class DaemonLine:
    pid: int
    url: str
    version: str
    data_dir: str
    started_at: float
    sandbox: str
    """What holds agents in, in a few words."""
    sandbox_missing: bool = False
    """A sandbox is wanted and none works: agents can reach all that the person can."""


@dataclass(kw_only=True)
class Status:
    schema: str = "legion.status/1"
    daemon: DaemonLine
    project: ProjectLine | None
    """None where the caller stands in no project: then all projects' tickets are listed."""
    projects: list[ProjectLine]
    counts: dict[str, int]
    """Tickets by state, all of them."""
    tickets: list[TicketLine]
    """All that have not ended, the last ended ones, and the last failed ones (all on request)."""
    omitted: int
    """Ended tickets that are not listed."""
    last_event: int
    questions: int = 0
    """How many wait for the person, in all projects: `legion inbox`."""
    questions_elsewhere: int = 0
    """How many of them are of other projects than this one."""
    usage: UsageLine | None = None
    """What the project's tickets spent, listed or not; null where nothing was counted."""
    seat: Seat | None = None
    """The caller: its mail and its reports."""
    plans: int = 0
    """How many wait for the person's decision: `legion plan list`."""


@dataclass(kw_only=True)
class Graph:
    schema: str = "legion.graph/1"
    tickets: list[TicketLine]
    edges: list[list[int]]
    """Pairs [ticket, comes after]."""
    waves: list[list[int]]
    critical_path: list[int]


@dataclass(kw_only=True)
class WaitState:
    """How far the asked-for tickets are; the answer to one long poll."""

    schema: str = "legion.wait/1"
    settled: bool
    """Nothing more will happen by itself to any of them."""
    tickets: list[TicketLine]
    stuck: list[int]
    """Waiting for a ticket that failed or was stopped, for a person, or for trust."""
    last_event: int


@dataclass(kw_only=True)
class CollectResult:
    schema: str = "legion.collected/1"
    branch: str
    old: str
    new: str
    commits: int
    files: int
    message: str


@dataclass(kw_only=True)
class WorktreeLine:
    name: str
    path: str
    bytes: int
    ticket: int | None
    state: str
    """in use, kept or warm."""


@dataclass(kw_only=True)
class WorktreeList:
    schema: str = "legion.worktrees/1"
    root: str
    worktrees: list[WorktreeLine]
    trash_bytes: int


@dataclass(kw_only=True)
class DoctorFinding:
    """One line of `legion doctor`."""

    name: str
    ok: bool
    detail: str
    advice: str = ""
    known: bool = True
    """False where it was not found out yet, which is no fault."""


@dataclass(kw_only=True)
class Doctor:
    schema: str = "legion.doctor/1"
    ok: bool
    findings: list[DoctorFinding]
    trial: TrialPage | None = None
    """Of the project's checks; null outside of a project."""


@dataclass(kw_only=True)
class BoardFound:
    """What a hub holds of its project's board."""

    project: str
    tickets: int
    at: float
    """When it was true."""


@dataclass(kw_only=True)
class Rebuild:
    """What `legion doctor --rebuild` finds and, after a yes, did."""

    schema: str = "legion.rebuild/1"
    database: str
    condition: str
    """lost, damaged or empty."""
    boards: list[BoardFound]
    lost: list[str]
    """What no board contains."""
    done: bool = False
    kept: str = ""
    """The path of the replaced database."""
    resumed: int = 0
    """Tickets whose agents were at work: they wait, and continue with the content of their worktrees."""
    landed: int = 0
    """Tickets that had landed after the last copy."""


@dataclass(kw_only=True)
class SettingLine:
    key: str
    value: object
    origin: str
    """default, the path of the user's file, legion.toml of the target, or legion.toml of the checkout."""


@dataclass(kw_only=True)
class Config:
    schema: str = "legion.config/1"
    user_file: str
    project_file: str
    settings: list[SettingLine]
    trusted: bool


@dataclass(kw_only=True)
class Problem:
    """Every error answer. `exit_code` is what the command line ends with."""

    schema: str = "legion.problem/1"
    code: str
    message: str
    exit_code: int
