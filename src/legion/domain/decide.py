"""What should be running, given what is. Level-triggered: the same answer after a restart as before it.

`decide` knows no history. It looks at the live tickets, the running jobs and the room there is, and says which jobs to
start. Applying a command changes what the next snapshot shows, so deciding twice on the same facts does no harm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from legion.domain import board
from legion.domain.conflicts import AT_WORK, Overlap, ordered
from legion.domain.rhythm import Hold, Rhythm, admit
from legion.domain.tickets import ParkReason, State, Ticket


class JobKind(Enum):
    RUN = "run"
    """An agent works on a ticket."""
    CHECK = "check"
    """A ticket's own proofs, or a checkpoint."""
    LAND = "land"
    """One project's merge queue."""
    BASELINE = "baseline"
    """The project's checks on the target itself."""


@dataclass(frozen=True, kw_only=True)
class ProjectView:
    id: int
    parallel: int
    """How many agents may work at once."""
    paused: bool
    trusted: bool
    """The person has trusted the commands in the target's legion.toml."""
    baseline_known: bool
    """The target's own checks have receipts, or there are none to run."""
    baseline_red: bool
    person_waiting: bool
    """The person committed something that the target lacks and that was not refused yet."""
    overlap: Overlap = Overlap.OFF
    """What it means that tickets declare the same files."""
    landing_begun: bool = False
    """The target was about to move, and it is not written down whether it did."""


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    projects: tuple[ProjectView, ...]
    tickets: tuple[Ticket, ...]
    """All that have not ended."""
    ended: Mapping[int, State]
    """The states of ended tickets that a live one comes after."""
    jobs: frozenset[tuple[JobKind, int]]
    """What runs: kind and ticket (run, check) or project (land, baseline)."""
    slots: int
    """Room for agents on this machine, all projects together."""
    open_runs: frozenset[int] = frozenset()
    """Tickets with a run of which no end is known."""
    resting: Mapping[tuple[JobKind, int], float] = field(default_factory=dict)
    """Jobs that broke (disk full, a bug), and until when they rest before they are started again."""
    rhythm: Rhythm = field(default_factory=Rhythm)
    """What else says when agents may begin."""


@dataclass(frozen=True)
class StartJob:
    """Claim and start a job. `version` is the ticket's, as decided on; None for a project's job."""

    kind: JobKind
    subject: int
    version: int | None = None


@dataclass(frozen=True)
class Wake:
    """A parked ticket's time has come."""

    ticket: int
    version: int


Command = StartJob | Wake


@dataclass(frozen=True)
class Decision:
    commands: tuple[Command, ...]
    wake_at: float | None
    held: Mapping[int, Hold] = field(default_factory=dict)
    """Tickets that could begin and do not, and why."""


def decide(snapshot: Snapshot, now: float) -> Decision:
    resting = {job for job, until in snapshot.resting.items() if until > now}
    ending = _to_end(snapshot, snapshot.jobs | resting)
    jobs = snapshot.jobs | {(start.kind, start.subject) for start in ending}
    room = snapshot.slots - sum(1 for kind, _ in jobs if kind is JobKind.RUN)
    states = dict(snapshot.ended) | {ticket.id: ticket.state for ticket in snapshot.tickets}
    # The agent of a stopped ticket may still be on its way out. Whose it was is not known, so it counts for everybody.
    live = {ticket.id for ticket in snapshot.tickets}
    leaving = sum(1 for kind, subject in jobs if kind is JobKind.RUN and subject not in live)
    commands: list[Command] = [*ending]
    for project in snapshot.projects:
        tickets = [ticket for ticket in snapshot.tickets if ticket.project == project.id]
        commands += _wakes(project, tickets, now)
        if not project.trusted:
            continue
        wanted = _project_jobs(project, tickets) + _in_hand(tickets) + _waiting(project, tickets, states)
        starts = [start for start in wanted if (start.kind, start.subject) not in jobs | resting]
        running = leaving + sum(1 for ticket in tickets if (JobKind.RUN, ticket.id) in jobs)
        admitted = _within(starts, min(room, project.parallel - running))
        room -= sum(1 for start in admitted if start.kind is JobKind.RUN)
        commands += admitted
    return _in_rhythm(snapshot, commands, now)


def _in_rhythm(snapshot: Snapshot, commands: list[Command], now: float) -> Decision:
    """Of the agents that could begin, those that may. What is in hand already goes on."""
    queued = {ticket.id for ticket in snapshot.tickets if ticket.state is State.QUEUED}
    begins = [
        command
        for command in commands
        # Without a version it only brings an older run to its end.
        if isinstance(command, StartJob) and command.kind is JobKind.RUN and command.version is not None
        if command.subject in queued
    ]
    admitted = admit(snapshot.rhythm, [begin.subject for begin in begins], now)
    held = {begin for begin in begins if begin.subject in admitted.held}
    kept = tuple(command for command in commands if command not in held)
    times = [time for time in (_wake_at(snapshot, now), admitted.wake_at) if time is not None]
    return Decision(kept, min(times, default=None), admitted.held)


def _to_end(snapshot: Snapshot, busy: frozenset[tuple[JobKind, int]]) -> list[StartJob]:
    """Runs of tickets that a person took out of work while nobody looked: they still need an end, before a new one."""
    working = {ticket.id for ticket in snapshot.tickets if ticket.state is State.WORKING}
    return [
        StartJob(JobKind.RUN, ticket)
        for ticket in sorted(snapshot.open_runs - working)
        if (JobKind.RUN, ticket) not in busy
    ]


def _wakes(project: ProjectView, tickets: list[Ticket], now: float) -> list[Wake]:
    wakes = []
    for ticket in tickets:
        if ticket.parked is None:
            continue
        timed = ticket.parked.until is not None and ticket.parked.until <= now
        blameless = ticket.parked.reason is ParkReason.RED_BASELINE
        if timed or (blameless and project.baseline_known and not project.baseline_red):
            wakes.append(Wake(ticket.id, ticket.version))
    return wakes


def _project_jobs(project: ProjectView, tickets: list[Ticket]) -> list[StartJob]:
    jobs = []
    waits = project.person_waiting or any(ticket.state is State.LANDING for ticket in tickets)
    if project.landing_begun or waits:
        jobs.append(StartJob(JobKind.LAND, project.id))
    if tickets and not project.baseline_known:
        jobs.append(StartJob(JobKind.BASELINE, project.id))
    return jobs


def _in_hand(tickets: list[Ticket]) -> list[StartJob]:
    """What was begun goes on, whoever began it: after a restart its job is missing and starts again."""
    kinds = {State.WORKING: JobKind.RUN, State.CHECKING: JobKind.CHECK}
    return [StartJob(kinds[ticket.state], ticket.id, ticket.version) for ticket in tickets if ticket.state in kinds]


def _waiting(project: ProjectView, tickets: list[Ticket], states: Mapping[int, State]) -> list[StartJob]:
    """Who may begin: attempts that go on before new ones, then priority, then age.

    Nothing begins while the person's own commits are on their way into the target: it would start from old code.
    """
    if project.paused or project.person_waiting:
        return []
    ready = [ticket for ticket in tickets if ticket.state is State.QUEUED and board.ready(ticket.wish.after, states)]
    ready.sort(key=lambda ticket: (ticket.attempt == 0, -ticket.wish.priority, ticket.id))
    at_work = [ticket for ticket in tickets if ticket.state in AT_WORK]
    ready = ordered(ready, at_work, project.overlap)
    return [
        StartJob(JobKind.CHECK if ticket.wish.checkpoint else JobKind.RUN, ticket.id, ticket.version)
        for ticket in ready
    ]


def _within(starts: list[StartJob], room: int) -> list[StartJob]:
    """Agents only as far as there is room; checks and landing always."""
    admitted = []
    for start in starts:
        if start.kind is JobKind.RUN:
            if room <= 0:
                continue
            room -= 1
        admitted.append(start)
    return admitted


def _wake_at(snapshot: Snapshot, now: float) -> float | None:
    parked = [ticket.parked.until for ticket in snapshot.tickets if ticket.parked and ticket.parked.until is not None]
    return min((time for time in [*parked, *snapshot.resting.values()] if time > now), default=None)
