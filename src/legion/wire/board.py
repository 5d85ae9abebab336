"""The board: status, graph and waiting; the merge queue; trees with changes that have not landed."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from legion.wire.agents import Seat
from legion.wire.bases import Waves
from legion.wire.lazy import dataclass
from legion.wire.table import LONGEST_WAIT, Folder, Number, OpenTo, Seconds, Table, TicketId, TicketIds, operation
from legion.wire.ticket_fields import REQUIRED, described
from legion.wire.tickets import TicketLine, UsageLine

if TYPE_CHECKING:
    from legion import wire


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
class Graph(Waves):
    schema: str = "legion.graph/1"
    tickets: list[TicketLine]
    edges: list[list[int]]
    """Pairs [ticket, comes after]."""


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
class QueueLine:
    """A change that waits to land, or that a person has to land."""

    ticket: int
    title: str
    state: str
    """`queued` in the merge queue, `held` by the person, or `gate` where it waits for `legion land N`."""
    place: int
    """1 lands first; 0 for what does not move by itself."""
    lines: int
    """How many lines it adds and removes."""
    priority: int
    since: float
    doing: str = ""


@dataclass(kw_only=True)
class QueueCheck:
    name: str
    state: str
    """`green`, `red`, `broken`, `runs` or `waits`."""


@dataclass(kw_only=True)
class QueueTestLine:
    """A test that runs now."""

    kind: str
    """`together`: the next batch; `part`: a part of a red one; `ahead`: the next ones, on top of a batch in test;
    `alone`: what blamed a change, once more."""
    tickets: list[int]
    """In the order in which they are put on the target."""
    upstream: bool
    """The person's own commits are tested with them."""
    checks: list[QueueCheck]
    since: float


@dataclass(kw_only=True)
class QueueBlame:
    """A change that a conflict or a failed check keeps from landing."""

    ticket: int
    title: str
    state: str
    """`blamed` while the failed checks are repeated alone; after that the state of the ticket."""
    checks: list[str]
    """The names of the checks that blame it; empty for a conflict."""
    why: str
    at: float


@dataclass(kw_only=True)
class MergeQueuePage:
    schema: str = "legion.queue/1"
    gate: str
    """The project's: `auto` or `person`."""
    changes: list[QueueLine]
    tests: list[QueueTestLine] = field(default_factory=list)
    suspects: list[int] = field(default_factory=list)
    """The tickets of a red batch of which one is to blame, while that is searched."""
    blamed: list[QueueBlame] = field(default_factory=list)
    """The newest first."""


@dataclass(kw_only=True)
class MoveInQueue:
    to: str = described(REQUIRED, argument="first|last|N", help="Its end, or the ticket that it goes before.")


@dataclass(kw_only=True)
class TryChanges:
    """Without tickets: all changes that are green and have not landed."""

    cwd: str
    tickets: list[int] = field(default_factory=list)


@dataclass(kw_only=True)
class TriedChanges:
    """A tree of its own with changes on the target. The person may do with it what they like."""

    schema: str = "legion.tried/1"
    path: str
    commit: str
    target: str
    tickets: list[int]
    """Whose changes it holds, in the order in which they were merged."""
    left_out: dict[str, str] = field(default_factory=dict)
    """By ticket: why its change is not in the tree."""
    message: str


class BoardRows(Table):
    @operation("GET", "/v1/status", open_to=OpenTo.LOOKS | OpenTo.AGENTS)
    def status(self, cwd: Folder | None, all: bool = False) -> Status:
        """The daemon, the project and its tickets"""

    @operation("GET", "/v1/graph", open_to=OpenTo.LOOKS | OpenTo.AGENTS)
    def graph(self, cwd: Folder) -> Graph:
        """Tickets, dependencies, waves and the critical path"""

    @operation("GET", "/v1/wait", open_to=OpenTo.LOOKS | OpenTo.AGENTS, waits=True)
    def wait(
        self, cwd: Folder | None, id: TicketIds = None, after_event: Number = 0, timeout: Seconds = LONGEST_WAIT
    ) -> WaitState:
        """Wait for the next event, or until all tickets are settled, at most 25 s"""

    @operation("GET", "/v1/queue", open_to=OpenTo.LOOKS)
    def merge_queue(self, cwd: Folder) -> MergeQueuePage:
        """What waits to land, in order, then what waits for you"""

    @operation("POST", "/v1/tickets/{id}/place", open_to=OpenTo.ACTS, plain="to")
    def move_in_queue(self, id: TicketId, wanted: MoveInQueue, /) -> wire.tickets.Acted:
        """Move a change to the front or the end of the queue, or before the change of ticket N

        A batch that is being tested is not interrupted.
        """

    @operation("POST", "/v1/try", open_to=OpenTo.BROWSER, waits=True)
    def try_changes(self, wanted: TryChanges, /) -> TriedChanges:
        """Open a tree with changes that have not landed"""
