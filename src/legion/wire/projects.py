"""Projects and the daemon: trust, trials of checks, settings, worktrees, pause and freeze."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from legion.domain import projects
from legion.wire.lazy import dataclass
from legion.wire.table import Folder, Number, OpenTo, Seconds, Table, operation
from legion.wire.ticket_fields import described

if TYPE_CHECKING:
    from legion import wire


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


SHELL_NAMES = projects.NAMES
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
    complaint: str = ""
    """What is wrong with your file as it is now: the settings before it are in force."""


@dataclass(kw_only=True)
class Problem:
    """Every error answer. `exit_code` is what the command line ends with."""

    schema: str = "legion.problem/1"
    code: str
    message: str
    exit_code: int


@dataclass(kw_only=True)
class SetNumbers:
    """Null leaves a number as it is; 0 returns to that of legion.toml."""

    cwd: str
    workers: int | None = described(None, no_option=True, help="How many agents work at once; 0: as in legion.toml.")
    retries: int | None = described(None, no_option=True, help="How often a ticket is tried; 0: as in legion.toml.")


@dataclass(kw_only=True)
class Numbers:
    schema: str = "legion.numbers/1"
    workers: int
    workers_set: bool
    """Whether the person set it; else it is legion.toml's."""
    retries: int
    retries_set: bool
    at_work: int
    """How many agents work on tickets of the project now."""
    message: str


class ProjectRows(Table):
    @operation(
        "POST",
        "/v1/projects",
        open_to=OpenTo.BROWSER,
        asks="Make a project of {what}? A legion.toml is added where there is none.",
    )
    def add_project(self, wanted: AddProject, /) -> ProjectAdded:
        """Make a git repository a project"""

    @operation("POST", "/v1/shell")
    def use_shell(self, wanted: ShellVariables, /) -> Done:
        """Use PATH, proxies, certificates and version managers of the person's shell for a repository's programs"""

    @operation("DELETE", "/v1/projects", open_to=OpenTo.BROWSER, asks="Remove {what}? Its repository stays as it is.")
    def remove_project(self, cwd: Folder) -> Done:
        """Remove a project; its repository stays as it is"""

    @operation("GET", "/v1/project/trustable", open_to=OpenTo.LOOKS)
    def trustable(self, cwd: Folder) -> Trustable:
        """The complete texts of legion.toml, roles and teams that can be trusted"""

    @operation("POST", "/v1/project/trust", open_to=OpenTo.BROWSER, asks="Let the commands of {what} run?")
    def trust(self, wanted: Trust, /) -> Done:
        """Allow the commands of the texts with these hashes"""

    @operation("POST", "/v1/project/trial", open_to=OpenTo.ACTS, plain="cwd again")
    def try_checks(self, wanted: TryChecks, /) -> TrialPage:
        """Try the checks with broken code, in the background"""

    @operation("GET", "/v1/project/trial", open_to=OpenTo.LOOKS, waits=True)
    def trial(self, cwd: Folder, after: Number = 0, timeout: Seconds = 0.0) -> TrialPage:
        """The trial of the checks; waits for a step later than `after`, at most 25 s"""

    @operation("POST", "/v1/project/pause", open_to=OpenTo.ACTS, plain="cwd")
    def pause(self, where: Where, /) -> wire.tickets.Acted:
        """Start no new runs in the project"""

    @operation("POST", "/v1/project/resume", open_to=OpenTo.ACTS, plain="cwd")
    def resume(self, where: Where, /) -> wire.tickets.Acted:
        """Start runs in the project again"""

    @operation(
        "POST",
        "/v1/project/stop",
        open_to=OpenTo.ACTS,
        plain="cwd",
        asks="Stop every ticket of {what}? Their work is kept, and retry brings them back.",
    )
    def stop_all(self, where: Where, /) -> wire.tickets.Acted:
        """Stop every ticket of the project that has not ended"""

    @operation("GET", "/v1/project/collect", open_to=OpenTo.LOOKS)
    def preview_collect(self, cwd: Folder) -> CollectResult:
        """What collect would bring; nothing is changed"""

    @operation(
        "POST", "/v1/project/collect", open_to=OpenTo.BROWSER, asks="Bring what landed into {what} of your repository?"
    )
    def collect(self, where: Where, /) -> CollectResult:
        """Bring landed changes into the person's branch"""

    @operation(
        "POST",
        "/v1/project/drop",
        open_to=OpenTo.ACTS,
        plain="cwd",
        asks="Remove every ended ticket of {what} from the board? What landed stays.",
    )
    def drop_ended(self, where: Where, /) -> wire.tickets.Acted:
        """Remove every ended ticket of the project from the board"""

    @operation("GET", "/v1/projects", open_to=OpenTo.LOOKS)
    def projects(self) -> wire.board.ProjectList:
        """List the projects of this daemon: name, folder, branch, open tickets, landed commits to collect"""

    @operation("GET", "/v1/project/numbers", open_to=OpenTo.LOOKS)
    def numbers(self, cwd: Folder) -> Numbers:
        """How many agents work at once, and how often a ticket is tried"""

    @operation("POST", "/v1/project/numbers", open_to=OpenTo.BROWSER)
    def set_numbers(self, wanted: SetNumbers, /) -> Numbers:
        """Set these numbers at once, without a commit"""

    @operation("GET", "/v1/worktrees", open_to=OpenTo.LOOKS)
    def worktrees(self, cwd: Folder) -> WorktreeList:
        """List the worktrees of agents, their size, and the size of the trash"""

    @operation("GET", "/v1/doctor", open_to=OpenTo.LOOKS)
    def doctor(self, cwd: Folder | None) -> Doctor:
        """Check this machine and the project"""

    @operation("POST", "/v1/doctor/attack", waits=True)
    def attack(self, where: Where, /) -> Doctor:
        """Try hostile commands in the project's sandbox, and say of each whether it held"""

    @operation("GET", "/v1/config", open_to=OpenTo.LOOKS)
    def config(self, cwd: Folder | None) -> Config:
        """Every setting in force and where it comes from"""

    @operation(
        "POST", "/v1/freeze", open_to=OpenTo.ACTS, asks="Stop every agent of every project? Nothing starts until thaw."
    )
    def freeze(self) -> wire.tickets.Acted:
        """Stop every agent of every project; nothing starts until thaw"""

    @operation("POST", "/v1/thaw", open_to=OpenTo.ACTS)
    def thaw(self) -> wire.tickets.Acted:
        """Resume what a freeze stopped"""

    @operation("POST", "/v1/shutdown")
    def shutdown(self) -> Done:
        """End the daemon; running agents continue"""
