"""Machines: invitations, the list of them, and what a machine and its head send each other."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from legion.wire.lazy import dataclass
from legion.wire.table import Count, MachineName, OpenTo, Table, operation
from legion.wire.ticket_fields import REQUIRED, described

if TYPE_CHECKING:
    from legion import wire


@dataclass(kw_only=True)
class MachineRunLine:
    """A run that was given to a machine."""

    run: str
    ticket: int | None
    state: str
    """placed, taken, ended or lapsed."""
    placed_at: float
    ended_at: float | None
    why: str
    """Why it lapsed; empty where it did not."""


@dataclass(kw_only=True)
class MachineLine:
    """The head or a machine."""

    name: str
    head: bool
    """Whether it is the host that this Legion runs on."""
    state: str
    """open, paused, draining, quiet, silent, outdated or disk full; only an open one starts new runs."""
    labels: list[str]
    slots: int
    runs: int
    """How many of its slots are taken."""
    version: str
    heard_at: float | None
    """When it was heard last; null for the head."""
    joined_at: float | None
    quiet_hours: str
    tools: str
    """The fingerprint of its toolchain: a digest of its system, compilers and tools. The head's is empty without
    machines.
    """
    disk_free_mb: int | None = None
    """Of the disk with its data, as it was heard last."""
    advice: str
    """What is wrong, and what fixes it; empty where nothing is."""
    offers: list[str] = field(default_factory=list)
    """The operations that may be called for it now, by their names."""


@dataclass(kw_only=True)
class MachineList:
    schema: str = "legion.machines/1"
    machines: list[MachineLine]
    """The head first, then in the order in which they joined."""
    reachable: str
    """The address that machines dial; empty: none is served."""
    also: list[str] = field(default_factory=list)
    """Addresses of processes that serve machines for the head: `legion serve --machines`."""


@dataclass(kw_only=True)
class MachineLog:
    schema: str = "legion.machinelog/1"
    machine: MachineLine
    runs: list[MachineRunLine]
    """The newest last."""


@dataclass(kw_only=True)
class RemoveMachine:
    yes: bool = described(False, help="Also while it has runs; work there that is not saved yet is not fetched.")


@dataclass(kw_only=True)
class InviteMachine:
    """`legion machine invite`: let one host in."""

    name: str = described(REQUIRED, argument="NAME", help="How the head calls it.")
    labels: list[str] = described(list, metavar="A,B", help="What `--on` finds it by, such as gpu,macos.")
    slots: int = described(4, least=1, most=256, help="How many runs at once.")
    quiet_hours: str = described("", metavar="HOURS", help="No new starts there then, such as 22:00-07:00.")
    host: str = described("", metavar="ADDRESS", help="This head's address, as the other host reaches it.")
    port: int = described(0, metavar="N", least=0, most=65535, help="Another port than 6690.")


@dataclass(kw_only=True)
class MachineInvitation:
    schema: str = "legion.invitation/1"
    name: str
    line: str
    """For `legion machine join` on the other host. It works once."""
    ends_at: float


@dataclass(kw_only=True)
class MachineJoin:
    """The first request of a machine, with the code of its invitation."""

    code: str
    version: str
    protocol: int
    boot: str
    toolchain: str = ""


@dataclass(kw_only=True)
class MachineLeaseTimes:
    """Seconds; see `legion.domain.machines.machine`."""

    beat: float
    quiet: float
    stop: float
    reap: float


@dataclass(kw_only=True)
class MachineJoined:
    name: str
    token: str
    lease: MachineLeaseTimes
    version: str


@dataclass(kw_only=True)
class RunRef:
    """The fence: everything a machine sends about a run names both."""

    run: str
    generation: int


@dataclass(kw_only=True)
class MirrorTarget:
    """The target of a project's hub."""

    project: int
    commit: str


@dataclass(kw_only=True)
class MachineBeat:
    """A sign of life, and what the machine has."""

    boot: str
    worker: str = ""
    """Names the worker process."""
    version: str
    protocol: int
    running: list[RunRef] = field(default_factory=list)
    """Every run that the machine has and whose end the head has not accepted."""
    mirrors: list[int] = field(default_factory=list)
    """The projects whose code it has."""
    acks: list[int] = field(default_factory=list)
    """Commands that were passed on to their runners, or that no runner was there for."""
    free: int = 0
    """How many more runs it has room for now; 0: it asks for none."""
    wait: float = 0.0
    """Seconds that the answer may wait for a job or a command."""
    toolchain: str | None = None
    disk_free_mb: int | None = None
    """Of the disk with its data; null: a release that does not measure it."""
    disk_floor_mb: int = 0
    """With less than that it starts nothing."""
    targets: list[MirrorTarget] | None = None
    """The targets of its mirrors, as it knows them; null: a release that does not follow them."""


@dataclass(kw_only=True)
class MachineCommand:
    id: int
    run: str
    kind: str
    """stop, interrupt, tell or permit."""
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(kw_only=True)
class MachineAnswer:
    """The head's answer to a beat."""

    jobs: list[dict[str, Any]] = field(default_factory=list)
    """What the machine should start, each a `legion.jobs.machines.travel.MachineJob`."""
    stop: list[RunRef] = field(default_factory=list)
    """Runs that are no longer this machine's: it ends them, and sends what they left as late work."""
    commands: list[MachineCommand] = field(default_factory=list)
    lease: MachineLeaseTimes | None = None
    targets: list[MirrorTarget] = field(default_factory=list)
    """Targets that have moved, of projects whose runs it was given: it fetches them before the next run needs them."""
    heads: list[str] = field(default_factory=list)
    """All addresses that serve machines, the one to prefer first; empty where only the head itself does."""
    notice: str = ""
    """For the machine's log: its release is too far from the head's, so it gets no new jobs. Empty where it is not."""


@dataclass(kw_only=True)
class MachineFileSize:
    """How much of a file the head has."""

    size: int


@dataclass(kw_only=True)
class MachineRunEnd:
    """How a run ended on its machine. Its files and its pack have to be there before."""

    result: dict[str, Any] | None = None
    """The runner's result.json; null: the runner was killed without one."""
    saved: dict[str, Any] | None = None
    """What the machine saved of the tree; null: nothing could be saved."""
    unsaved: str = ""
    """Why nothing could be saved, where that is so. The run counts as lost then, whatever its agent reports."""
    failed: str = ""
    """Why the run could not be prepared on this machine, where that is so."""
    setup_failed: bool = False
    """It was the project's [setup] that failed."""
    over_quota: list[int] = field(default_factory=list)
    """Where the machine stopped it for its disk quota: bytes that it held, and bytes that are allowed."""
    tree: str = ""
    """The path of its worktree there: paths in the journal start with it."""


@dataclass(kw_only=True)
class MachineAccepted:
    """Whether the end was accepted as the run's, or kept as late work."""

    late: bool = False


@dataclass(kw_only=True)
class HeadState:
    """What `legion machine head backup`, `restore` or `move` copied."""

    schema: str = "legion.head/1"
    rows: int
    projects: list[str]
    place: str
    """The file that was written or read, or the database that was filled, without its password."""
    bytes: int = 0
    """Of the file."""
    kept: str = ""
    """The path of the old database."""


class MachineRows(Table):
    """They are the person's alone: a machine runs programs in the person's name."""

    @operation("GET", "/v1/machines", open_to=OpenTo.LOOKS)
    def machines(self) -> MachineList:
        """List the head and its machines: state, runs and slots, labels, release, and when each was heard

        Only a machine that is ready starts new runs. What a machine runs continues in every state but silent.
        """

    @operation("POST", "/v1/machines", open_to=OpenTo.BROWSER, created=True)
    def invite_machine(self, wanted: InviteMachine, /) -> MachineInvitation:
        """Let another host in as the machine NAME: prints the command to run there. It works once, for 15 minutes

        --host is needed once: from then on this head serves that address to its machines, with TLS, and remembers it.
        """

    @operation("GET", "/v1/machines/{name}/log", open_to=OpenTo.LOOKS)
    def machine_log(self, name: MachineName, /, limit: Count = 50) -> MachineLog:
        """Show the runs that a machine was given, newest last, and why one was taken from it

        `legion log N` shows the output of a run, wherever it is. The worker's own messages are on its host.
        """

    @operation("POST", "/v1/machines/{name}/pause", open_to=OpenTo.ACTS)
    def pause_machine(self, name: MachineName, /) -> wire.projects.Done:
        """Start nothing new on a machine. What it runs continues"""

    @operation("POST", "/v1/machines/{name}/resume", open_to=OpenTo.ACTS)
    def resume_machine(self, name: MachineName, /) -> wire.projects.Done:
        """Give a machine that was paused or drained work again"""

    @operation("POST", "/v1/machines/{name}/drain", open_to=OpenTo.ACTS)
    def drain_machine(self, name: MachineName, /) -> wire.projects.Done:
        """Start nothing new on a machine that is to be removed or updated

        `legion machine list` shows when it is empty.
        """

    @operation(
        "POST",
        "/v1/machines/{name}/remove",
        open_to=OpenTo.BROWSER,
        asks="Remove {what}? Its token opens nothing from then on. Drain it first if it has runs.",
    )
    def remove_machine(self, name: MachineName, wanted: RemoveMachine, /) -> wire.projects.Done:
        """Remove a machine. Its token opens nothing from that moment on, and its runs start again elsewhere"""

    @operation("POST", "/v1/machines/{name}/update", open_to=OpenTo.BROWSER)
    def update_machine(self, name: MachineName, /) -> wire.projects.Done:
        """Have a machine's worker start again, as the release that is installed there. Its runs continue

        Install the release on that machine first, for example with `uv tool upgrade legionary`.
        """
