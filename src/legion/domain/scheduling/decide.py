"""What should be running, given what is. Level-triggered: the same answer after a restart as before it.

`decide` knows no history. It looks at the live tickets, the agents with mail, the running jobs and the room there is,
and says which jobs to start. Applying a command changes what the next snapshot shows, so deciding twice on the same
facts does no harm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from legion.domain.agents.agent import STANDING
from legion.domain.landing.conflicts import AT_WORK, Overlap, ordered
from legion.domain.runs import agent_seat
from legion.domain.scheduling.admission import AdmissionState, HoldReason, StartCandidate, admit
from legion.domain.tickets import board
from legion.domain.tickets.ticket import ParkReason, State, Ticket


class JobKind(Enum):
    RUN = "run"
    """An agent works on a ticket."""
    CHECK = "check"
    """A ticket's own proofs, or a checkpoint."""
    REVIEW = "review"
    """Somebody reads a ticket's change."""
    LAND = "land"
    """One project's merge queue."""
    BASELINE = "baseline"
    """The project's checks on the target itself."""
    SERVE = "serve"
    """One turn of a standing agent."""


TAKES_A_SLOT = (JobKind.RUN, JobKind.REVIEW, JobKind.SERVE)
"""The jobs of agents."""
_OF_TICKETS = (JobKind.RUN, JobKind.REVIEW)
"""Those that count against their project's share."""


_NOT_THE_HOLDERS = (State.CHECKING, State.REVIEWING)
"""Where a claimed ticket is in our hands, and not with the standing agent that claimed it."""


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
class AgentView:
    """A standing agent, or one that was fired and whose last turn has not ended."""

    number: int
    project: int
    wanted: bool
    """It has mail, or goes on after it was cut off."""
    held_until: float | None = None
    in_a_turn: bool = False
    """A turn has begun of which no end is known."""


@dataclass(frozen=True, kw_only=True)
class BoardSnapshot:
    projects: tuple[ProjectView, ...]
    tickets: tuple[Ticket, ...]
    """All that have not ended."""
    ended: Mapping[int, State]
    """The states of ended tickets that a live one comes after."""
    jobs: frozenset[tuple[JobKind, int]]
    """What runs: kind and ticket (run, check, review), project (land, baseline) or agent (serve)."""
    slots: int
    """Room for agents on this machine, all projects together."""
    open_runs: frozenset[int] = frozenset()
    """Tickets with a run of who builds of which no end is known."""
    open_readings: frozenset[int] = frozenset()
    """Tickets with a run of a reader of which no end is known."""
    read_aside: Mapping[int, int] = field(default_factory=dict)
    """Tickets that are read while they go on or after they have landed, and their projects."""
    agents: tuple[AgentView, ...] = ()
    held: frozenset[int] = frozenset()
    """Tickets that standing agents have claimed: their runs are those agents' turns."""
    resting: Mapping[tuple[JobKind, int], float] = field(default_factory=dict)
    """Jobs that broke (disk full, a bug), and until when they rest before they are started again."""
    rhythm: AdmissionState = field(default_factory=AdmissionState)
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


@dataclass(frozen=True)
class HandBack:
    """A claimed ticket was sent back, or goes on after a pause: whoever claimed it takes it up again."""

    ticket: int
    version: int


Command = StartJob | Wake | HandBack


@dataclass(frozen=True)
class Decision:
    commands: tuple[Command, ...]
    wake_at: float | None
    held: Mapping[StartCandidate, HoldReason] = field(default_factory=dict)
    """Who could begin and does not, and why."""


def decide(snapshot: BoardSnapshot, now: float) -> Decision:
    resting = {job for job, until in snapshot.resting.items() if until > now}
    ending = _to_end(snapshot, snapshot.jobs | resting)
    jobs = snapshot.jobs | {(start.kind, start.subject) for start in ending}
    room = snapshot.slots - sum(1 for kind, _ in jobs if kind in TAKES_A_SLOT)
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
        free = [ticket for ticket in tickets if ticket.id not in snapshot.held]
        commands += _hand_backs(project, tickets, snapshot.held)
        begun = free + [ticket for ticket in tickets if ticket not in free and ticket.state in _NOT_THE_HOLDERS]
        wanted = _project_jobs(project, tickets) + _in_hand(begun) + _waiting(project, free, tickets, states)
        wanted += _aside(snapshot, project)
        starts = [start for start in wanted if (start.kind, start.subject) not in jobs | resting]
        running = leaving + sum(1 for ticket in tickets for kind in _OF_TICKETS if (kind, ticket.id) in jobs)
        admitted = _within(starts, min(room, project.parallel - running))
        room -= sum(1 for start in admitted if start.kind in _OF_TICKETS)
        commands += admitted
        serving = _turns(project, snapshot.agents, jobs | resting, now)[: max(0, room)]
        room -= len(serving)
        commands += serving
    return _in_rhythm(snapshot, commands, now)


def _in_rhythm(snapshot: BoardSnapshot, commands: list[Command], now: float) -> Decision:
    """Of the agents that could begin, those that may. What is in hand already goes on."""
    queued = {ticket.id for ticket in snapshot.tickets if ticket.state is State.QUEUED}
    to_read = {ticket.id for ticket in snapshot.tickets if ticket.state is State.REVIEWING} - snapshot.open_readings
    in_a_turn = {agent.number for agent in snapshot.agents if agent.in_a_turn}
    begins: dict[StartCandidate, Command] = {}
    for command in commands:
        match command:
            # Without a version it only brings an older run to its end.
            case StartJob(JobKind.RUN, ticket, version) if version is not None and ticket in queued:
                begins[ticket] = command
            case StartJob(JobKind.REVIEW, ticket) if ticket in to_read:
                begins[ticket] = command
            case StartJob(JobKind.SERVE, agent) if agent not in in_a_turn:
                begins[agent_seat(agent)] = command
    admitted = admit(snapshot.rhythm, tuple(begins), now, in_hand=to_read)
    held = {begins[who] for who in admitted.held}
    kept = tuple(command for command in commands if command not in held)
    times = [time for time in (_wake_at(snapshot, now), admitted.wake_at) if time is not None]
    return Decision(kept, min(times, default=None), admitted.held)


def _to_end(snapshot: BoardSnapshot, busy: frozenset[tuple[JobKind, int]]) -> list[StartJob]:
    """Runs of tickets that a person took out of work while nobody looked: they still need an end, before a new one."""
    working = {ticket.id for ticket in snapshot.tickets if ticket.state is State.WORKING}
    begun = [StartJob(JobKind.RUN, ticket) for ticket in sorted(snapshot.open_runs - working)]
    read = {ticket.id for ticket in snapshot.tickets if ticket.state is State.REVIEWING} | snapshot.read_aside.keys()
    begun += [StartJob(JobKind.REVIEW, ticket) for ticket in sorted(snapshot.open_readings - read)]
    # A turn that has begun comes to its end whatever became of its agent.
    begun += [StartJob(JobKind.SERVE, agent.number) for agent in snapshot.agents if agent.in_a_turn]
    return [start for start in begun if (start.kind, start.subject) not in busy]


def _turns(
    project: ProjectView, agents: tuple[AgentView, ...], busy: frozenset[tuple[JobKind, int]], now: float
) -> list[StartJob]:
    """Agents with something to do. They count against the machine's slots, not against the project's."""
    if project.paused:
        return []
    return [
        StartJob(JobKind.SERVE, agent.number)
        for agent in agents
        if agent.project == project.id
        and agent.wanted
        and not agent.in_a_turn
        and (agent.held_until is None or agent.held_until <= now)
        and (JobKind.SERVE, agent.number) not in busy
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


def _hand_backs(project: ProjectView, tickets: list[Ticket], held: frozenset[int]) -> list[HandBack]:
    if project.paused or project.person_waiting:
        return []
    back = [ticket for ticket in tickets if ticket.id in held and ticket.state is State.QUEUED]
    return [HandBack(ticket.id, ticket.version) for ticket in back]


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
    kinds = {State.WORKING: JobKind.RUN, State.CHECKING: JobKind.CHECK, State.REVIEWING: JobKind.REVIEW}
    return [StartJob(kinds[ticket.state], ticket.id, ticket.version) for ticket in tickets if ticket.state in kinds]


def _aside(snapshot: BoardSnapshot, project: ProjectView) -> list[StartJob]:
    """What is read without anybody waiting for it comes last."""
    mine = sorted(ticket for ticket, whose in snapshot.read_aside.items() if whose == project.id)
    return [] if project.paused else [StartJob(JobKind.REVIEW, ticket) for ticket in mine]


def _waiting(
    project: ProjectView, free: list[Ticket], tickets: list[Ticket], states: Mapping[int, State]
) -> list[StartJob]:
    """Who of those that nobody has claimed may begin: attempts that go on before new ones, then priority, then age.

    Nothing begins while the person's own commits are on their way into the target: it would start from old code.
    """
    if project.paused or project.person_waiting:
        return []
    ready = [
        ticket
        for ticket in free
        if ticket.state is State.QUEUED and ticket.spec.driver != STANDING and board.ready(ticket.spec.after, states)
    ]
    ready.sort(key=lambda ticket: (ticket.attempt == 0, -ticket.spec.priority, ticket.id))
    at_work = [ticket for ticket in tickets if ticket.state in AT_WORK]
    ready = ordered(ready, at_work, project.overlap)
    return [
        StartJob(JobKind.CHECK if ticket.spec.checkpoint else JobKind.RUN, ticket.id, ticket.version)
        for ticket in ready
    ]


def _within(starts: list[StartJob], room: int) -> list[StartJob]:
    """Agents only as far as there is room; checks and landing always."""
    admitted = []
    for start in starts:
        if start.kind in _OF_TICKETS:
            if room <= 0:
                continue
            room -= 1
        admitted.append(start)
    return admitted


def _wake_at(snapshot: BoardSnapshot, now: float) -> float | None:
    parked = [ticket.parked.until for ticket in snapshot.tickets if ticket.parked and ticket.parked.until is not None]
    held = [agent.held_until for agent in snapshot.agents if agent.wanted and agent.held_until is not None]
    return min((time for time in [*parked, *held, *snapshot.resting.values()] if time > now), default=None)
