"""Decides which jobs should start. Level-triggered: the same answer after a restart as before it.

`decide` keeps no history. It reads the live tickets, the agents with mail, the running jobs and the free slots, and
returns the jobs to start. Applying a command changes the next snapshot, so deciding twice on the same facts does no
harm.

Slots go to started work first. New work then shares what is left: each project's tickets and each project's standing
agents form a queue, and the next slot goes to the queue with the fewest agents at work, then to the one that has waited
longest. A candidate that a limit or a budget holds takes no slot.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from legion.domain.agents.agent import STANDING
from legion.domain.landing.conflicts import AT_WORK, coupled, ordered
from legion.domain.machines.placement import Lack, Nowhere, RunPlace
from legion.domain.rules import Rule
from legion.domain.runs import agent_seat, plan_seat
from legion.domain.scheduling.admission import AdmissionRound, AdmissionState, HoldReason, StartCandidate
from legion.domain.scheduling.job_places import TAKES_A_SLOT as TAKES_A_SLOT
from legion.domain.scheduling.job_places import AgentView as AgentView
from legion.domain.scheduling.job_places import Claim as Claim
from legion.domain.scheduling.job_places import Command, HandBack, JobPlaces, ParkTicket, StartJob, Wake
from legion.domain.scheduling.job_places import JobKind as JobKind
from legion.domain.scheduling.job_places import PlanView as PlanView
from legion.domain.scheduling.job_places import ProjectView as ProjectView
from legion.domain.tickets import board
from legion.domain.tickets.ladder import rests_too_long
from legion.domain.tickets.ticket import ParkReason, State, Ticket

MOST_COMMANDS = 100
"""With more, a decision starts no new work. Applying these leads to the next decision, which reads newer facts."""
_PROJECT_LIMITED = (JobKind.RUN, JobKind.REVIEW)
"""Jobs that count against `parallel` of their project."""
_NOT_WITH_HOLDER = (State.CHECKING, State.REVIEWING)
"""States in which Legion works on a claimed ticket, not the standing agent that claimed it."""
_TRIED = HoldReason(rule=Rule.ALREADY_THERE, why="its proofs run first: another ticket may have brought it")


@dataclass(frozen=True, kw_only=True)
class BoardSnapshot:
    projects: tuple[ProjectView, ...]
    tickets: tuple[Ticket, ...]
    """All that have not ended."""
    ended: Mapping[int, State]
    """The states of ended tickets that a live one comes after."""
    jobs: frozenset[tuple[JobKind, int]]
    """What runs: kind and ticket (run, check, review), project (land, baseline), agent (serve) or plan (plan)."""
    slots: int
    """Room for agents on this machine, all projects together."""
    open_runs: frozenset[int] = frozenset()
    """Tickets with a builder's or advisor's run whose end is not recorded."""
    open_reviews: frozenset[int] = frozenset()
    """Tickets with a reviewer's run whose end is not recorded."""
    optional_reviews: Mapping[int, int] = field(default_factory=dict)
    """Tickets with an optional review, which their progress does not depend on, and their projects."""
    agents: tuple[AgentView, ...] = ()
    plans: tuple[PlanView, ...] = ()
    guesses: Mapping[int, frozenset[str]] = field(default_factory=dict)
    brought: Mapping[int, int] = field(default_factory=dict)
    """By ticket whose proofs pass on the proven change of another: that one. It does not start on it."""
    lanes: Mapping[int, int] = field(default_factory=dict)
    """Tickets that are attempts in a race without a winner, and their race."""
    racing: frozenset[int] = frozenset()
    """Tickets that are proven and wait for other lanes of their race before they land."""
    held: frozenset[int] = frozenset()
    """Tickets that standing agents have claimed: their runs are those agents' turns."""
    resting: Mapping[tuple[JobKind, int], float] = field(default_factory=dict)
    """Jobs that raised an error, and until when they back off."""
    admission: AdmissionState = field(default_factory=AdmissionState)
    """Limits, budgets and settings that hold starts."""
    places: tuple[RunPlace, ...] = ()
    """The head and its machines, with what runs there; empty: `slots` is all the room there is."""
    travels: frozenset[JobKind] = frozenset()
    """The jobs that can run on machines. The others stay on the head."""
    staying: frozenset[int] = frozenset()
    """Projects whose jobs all stay there."""
    labels: Mapping[tuple[JobKind, int], frozenset[str]] = field(default_factory=dict)
    """What jobs ask of their place, in addition to the labels of their ticket."""
    at: Mapping[tuple[JobKind, int], str] = field(default_factory=dict)
    """The machine of each job that runs."""
    open_at: Mapping[tuple[JobKind, int], str] = field(default_factory=dict)
    """The places of runs whose end is not recorded: a job that follows one has to go there."""
    attended: frozenset[int] = frozenset()
    """Tickets that people work on themselves: their runs need no slot, and take none from the squad."""

    def takes_slot(self, kind: JobKind, subject: int) -> bool:
        return kind in TAKES_A_SLOT and not (kind is JobKind.RUN and subject in self.attended)


@dataclass(frozen=True)
class Decision:
    commands: tuple[Command, ...]
    wake_at: float | None
    held: Mapping[StartCandidate, HoldReason] = field(default_factory=dict)
    """Candidates that could start and are held, and why."""
    behind: Mapping[int, int] = field(default_factory=dict)
    """By ticket that starts on the change of another: that one."""


def decide(snapshot: BoardSnapshot, now: float) -> Decision:
    tickets = _Tickets(snapshot)
    decision = _Round(snapshot, tickets, now)
    works = [_ProjectWork(snapshot, project, tickets) for project in snapshot.projects]
    for work in works:
        decision.commands += work.wakes(now)
        decision.commands += work.machine_found(decision.places)
        if work.may_run:
            decision.commands += work.hand_backs()
            decision.offer_all(work.project, work.project_jobs() + work.started())
    runnable = [work for work in works if work.may_run]
    queues = [_StartQueue(work.project, work.new_starts()) for work in runnable]
    for work in runnable:
        decision.held |= work.held
    queues += [_StartQueue(work.project, work.turns(now), turns=True) for work in runnable]
    decision.share(queues)
    for work in runnable:
        decision.offer_all(work.project, work.optional_reviews())
    times = [hold.until for hold in decision.held.values() if hold.until is not None]
    wake_at = min([*times, *_wake_times(snapshot, tickets, now)], default=None)
    behind = {ticket: other for work in runnable for ticket, other in work.behind.items()}
    return Decision(tuple(decision.commands), wake_at, decision.held, behind)


class _Tickets:
    """The live tickets, read once: thousands may be queued, and few are anything else."""

    def __init__(self, snapshot: BoardSnapshot) -> None:
        self.all = {ticket.id: ticket for ticket in snapshot.tickets}
        self.states = dict(snapshot.ended)
        self.queued: defaultdict[int, list[Ticket]] = defaultdict(list)
        """By project."""
        self.begun: list[Ticket] = []
        """In any other state."""
        queued = State.QUEUED
        for ticket in snapshot.tickets:
            self.states[ticket.id] = ticket.state
            (self.queued[ticket.project] if ticket.state is queued else self.begun).append(ticket)

    def is_queued(self, id: int) -> bool:
        return self.states.get(id) is State.QUEUED

    def numbers(self, state: State) -> set[int]:
        """Of tickets in that state, which is not `queued`."""
        return {ticket.id for ticket in self.begun if ticket.state is state}


_Start = tuple[float, JobKind, int, int | None]
"""The time since which it waits, then the fields of StartJob: thousands may wait, and few start."""


@dataclass
class _StartQueue:
    """Candidates of one project that share slots with other queues, in order."""

    project: ProjectView
    starts: deque[_Start]
    turns: bool = False
    """Turns of standing agents, and planners: they count against the machine's slots, not the project's limit."""


class _Round:
    """One decision in the making: the commands so far, and the room that they leave."""

    def __init__(self, snapshot: BoardSnapshot, tickets: _Tickets, now: float) -> None:
        backing_off = {job for job, until in snapshot.resting.items() if until > now}
        ending = _runs_to_end(snapshot, tickets, snapshot.jobs | backing_off)
        jobs = snapshot.jobs | {(start.kind, start.subject) for start in ending}
        self.commands: list[Command] = [*ending]
        self.held: dict[StartCandidate, HoldReason] = {}
        self._busy = jobs | backing_off
        self._placed = bool(snapshot.places)
        self.places = JobPlaces(
            snapshot.places,
            tickets.all,
            travels=snapshot.travels,
            staying=snapshot.staying,
            labels=snapshot.labels,
            open_at=snapshot.open_at,
        )
        self._takes_slot = snapshot.takes_slot
        for start in ending:
            if self._takes_slot(start.kind, start.subject):
                self.places.take(start.kind, start.subject)
        self._room = snapshot.slots - sum(1 for job in jobs if self._takes_slot(*job))
        self._admission = AdmissionRound(snapshot.admission, now)
        self._tickets = tickets
        self._to_review = tickets.numbers(State.REVIEWING) - snapshot.open_reviews
        self._in_a_turn = {agent.number for agent in snapshot.agents if agent.in_a_turn}
        self._in_planning = {plan.number for plan in snapshot.plans if plan.in_a_run}
        limited = [job[1] for job in jobs if job[0] in _PROJECT_LIMITED and self._takes_slot(*job)]
        self._on_tickets = Counter(tickets.all[subject].project for subject in limited if subject in tickets.all)
        # The agent of a stopped ticket may still be ending. Its project is not in the snapshot, so it counts for all.
        self._leaving = sum(1 for kind, subject in jobs if kind is JobKind.RUN and subject not in tickets.all)
        employers = {agent.number: agent.project for agent in snapshot.agents}
        serving = [subject for kind, subject in jobs if kind is JobKind.SERVE]
        planned = {plan.number: plan.project for plan in snapshot.plans}
        planning = [subject for kind, subject in jobs if kind is JobKind.PLAN]
        self._on_turns = Counter(employers[agent] for agent in serving if agent in employers)
        self._on_turns.update(planned[plan] for plan in planning if plan in planned)

    def share(self, queues: list[_StartQueue]) -> None:
        """Offer starts, each time the next one of the queue with the fewest agents at work, while there is room."""
        left = [queue for queue in queues if queue.starts]
        while left and self._some_room():
            queue = min(left, key=lambda one: (self._at_work(one), one.starts[0][0]))
            if not queue.turns and self._is_full(queue.project):
                self._offer_special(queue)
                left.remove(queue)
                continue
            self.offer(queue.project, StartJob(*queue.starts.popleft()[1:]))
            if not queue.starts:
                left.remove(queue)
        for queue in left:
            self._offer_special(queue)

    def _offer_special(self, queue: _StartQueue) -> None:
        """Without room: what needs none, and what asks for labels that perhaps no machine has."""
        choosy = self.places.choosy
        for _, kind, subject, version in queue.starts:
            if not self._takes_slot(kind, subject) or subject in choosy:
                self.offer(queue.project, StartJob(kind, subject, version))

    def offer_all(self, project: ProjectView, starts: Iterable[StartJob]) -> None:
        for start in starts:
            self.offer(project, start)

    def offer(self, project: ProjectView, start: StartJob) -> None:
        """Start the job unless it runs already, has no room, or is held."""
        slot = self._takes_slot(start.kind, start.subject)
        if (start.kind, start.subject) in self._busy or (slot and not self._has_room(project, start.kind)):
            return
        candidate = self._candidate(start)
        found = self.places.find(project.id, start.kind, start.subject) if slot else None
        if isinstance(found, Nowhere):
            self._refuse(start, candidate, found)
            return
        if candidate is not None:
            hold = self._admission.admit(candidate, started=not slot or candidate in self._to_review)
            if hold is not None:
                self.held[candidate] = hold
                return
        if found is not None:
            start = replace(start, place=found.machine, why=found.why if self.places.several else "")
            self.places.take(start.kind, start.subject, found.machine)
        if slot:
            self._room -= 1
            at_work = self._on_tickets if start.kind in _PROJECT_LIMITED else self._on_turns
            at_work[project.id] += 1
        self.commands.append(start)

    def _has_room(self, project: ProjectView, kind: JobKind) -> bool:
        """Of a job that takes a slot."""
        if kind in _PROJECT_LIMITED and self._is_full(project):
            return False
        return self._placed or self._room > 0

    def _is_full(self, project: ProjectView) -> bool:
        return self._leaving + self._on_tickets[project.id] >= project.parallel

    def _some_room(self) -> bool:
        room = self.places.free > 0 if self._placed else self._room > 0
        return room and len(self.commands) < MOST_COMMANDS

    def _refuse(self, start: StartJob, candidate: StartCandidate | None, found: Nowhere) -> None:
        if found.lack is Lack.MACHINE and isinstance(candidate, int) and start.version is not None:
            self.commands.append(ParkTicket(candidate, start.version, found.why))
        elif candidate is not None and found.lack is not Lack.SLOT:
            rule = Rule.QUIET_HOURS if found.lack is Lack.HOURS else Rule.NO_ROOM
            self.held[candidate] = HoldReason(rule=rule, why=found.why, until=found.until)

    def _candidate(self, start: StartJob) -> StartCandidate | None:
        """What admission control knows the job by; None for work that has started."""
        match start:
            # Without a version it only brings an older run to its end.
            case StartJob(JobKind.RUN, ticket, version) if version is not None and self._tickets.is_queued(ticket):
                return ticket
            case StartJob(JobKind.REVIEW, ticket) if ticket in self._to_review:
                return ticket
            case StartJob(JobKind.SERVE, agent) if agent not in self._in_a_turn:
                return agent_seat(agent)
            case StartJob(JobKind.PLAN, plan) if plan not in self._in_planning:
                return plan_seat(plan)
            case _:
                return None

    def _at_work(self, queue: _StartQueue) -> int:
        return (self._on_turns if queue.turns else self._on_tickets)[queue.project.id]


class _ProjectWork:
    """What one project wants to run."""

    def __init__(self, snapshot: BoardSnapshot, project: ProjectView, tickets: _Tickets) -> None:
        self.project = project
        self._snapshot = snapshot
        self._states = tickets.states
        self._queued = tickets.queued[project.id]
        self._begun = [ticket for ticket in tickets.begun if ticket.project == project.id]
        self._live = tickets.all
        self.held: dict[StartCandidate, HoldReason] = {}
        self.behind: dict[int, int] = {}

    @property
    def may_run(self) -> bool:
        return self.project.trusted and self.project.readable

    @property
    def _may_start(self) -> bool:
        """Nothing new starts while the person's commits are on their way into the target: it would use old code."""
        return not self.project.paused and not self.project.upstream_pending

    def wakes(self, now: float) -> list[Wake]:
        wakes = []
        for ticket in self._begun:
            if ticket.parked is None:
                continue
            until = ticket.parked.until
            timed = until is not None and (until <= now or rests_too_long(ticket.parked, now))
            red_target = ticket.parked.reason is ParkReason.RED_BASELINE
            if timed or (red_target and self.project.baseline_known and not self.project.baseline_red):
                wakes.append(Wake(ticket.id, ticket.version))
        return wakes

    def machine_found(self, places: JobPlaces) -> list[Wake]:
        parked = [one for one in self._begun if one.parked and one.parked.reason is ParkReason.NO_MACHINE]
        return [Wake(ticket.id, ticket.version) for ticket in parked if places.could_take(ticket)]

    def hand_backs(self) -> list[HandBack]:
        if not self._may_start:
            return []
        return [HandBack(one.id, one.version) for one in self._queued if one.id in self._snapshot.held]

    def project_jobs(self) -> list[StartJob]:
        project, jobs = self.project, []
        landing = any(one.state is State.LANDING and one.id not in self._snapshot.racing for one in self._begun)
        waiting = project.upstream_pending or landing
        if project.landing_open or waiting:
            jobs.append(StartJob(JobKind.LAND, project.id))
        if (self._queued or self._begun) and not project.baseline_known:
            jobs.append(StartJob(JobKind.BASELINE, project.id))
        return jobs

    def started(self) -> list[StartJob]:
        """Started work whose job is missing, as after a restart."""
        kinds = {State.WORKING: JobKind.RUN, State.CHECKING: JobKind.CHECK, State.REVIEWING: JobKind.REVIEW}
        claimed = self._snapshot.held
        free = [one for one in self._begun if one.id not in claimed]
        ours = free + [one for one in self._begun if one.id in claimed and one.state in _NOT_WITH_HOLDER]
        stacked = {one.id: one.behind for one in ours if one.state is State.CHECKING and one.behind in self._live}
        for id, behind in stacked.items():
            why = f"waits for #{behind}, on whose change it is built"
            self.held[id] = HoldReason(rule=Rule.OVERLAP_WAITS, why=why)
        free = [one for one in ours if one.id not in stacked]
        return [StartJob(kinds[ticket.state], ticket.id, ticket.version) for ticket in free if ticket.state in kinds]

    def new_starts(self) -> deque[_Start]:
        """Unclaimed tickets that may start, sorted: retries first, then priority, then age."""
        if not self._may_start:
            return deque()
        held, states = self._snapshot.held, self._states
        ready = [
            ticket
            for ticket in self._queued
            if ticket.id not in held
            and ticket.spec.driver != STANDING
            and (not ticket.spec.after or board.ready(ticket.spec.after, states))
        ]
        ready.sort(key=lambda ticket: (ticket.attempt == 0, -ticket.spec.priority, ticket.id))
        begun = [ticket for ticket in self._begun if not self._lands_after_a_queued_one(ticket)]
        at_work = [ticket for ticket in begun if ticket.state in AT_WORK]
        ready = self._apart(ready, at_work, begun)
        check, run = JobKind.CHECK, JobKind.RUN
        self.held |= {one.id: _TRIED for one in ready if (check, one.id) in self._snapshot.jobs}
        return deque(
            (ticket.moved_at, check if ticket.spec.checkpoint else run, ticket.id, ticket.version)
            for ticket in ordered(ready, at_work, self.project.overlap, self._snapshot.lanes)
            if ticket.id not in self.held
        )

    def _lands_after_a_queued_one(self, ticket: Ticket) -> bool:
        """It waits itself until that one has worked again: if any ticket waited for it, both could for ever."""
        below, known = self._live.get(ticket.behind or 0), {ticket.id}
        while below is not None and below.state is not State.QUEUED and below.id not in known:
            known.add(below.id)
            below = self._live.get(below.behind or 0)
        return below is not None and below.state is State.QUEUED

    def _apart(self, ready: list[Ticket], at_work: list[Ticket], begun: list[Ticket]) -> list[Ticket]:
        """Without those that wait for another's work on the same definition."""
        if not (of := self._snapshot).guesses and not any(ticket.lost for ticket in ready):
            return ready
        waiting = coupled(ready, at_work, begun, of.guesses, of.lanes, of.brought)
        self.behind |= {id: one.behind[0] for id, one in waiting.items() if one.stacks}
        self.held |= {
            id: HoldReason(rule=Rule.OVERLAP_WAITS, why=f"{one.why}; `legion edit {id} --alone` starts it now")
            for id, one in waiting.items()
            if not one.stacks
        }
        return [ticket for ticket in ready if ticket.id not in self.held]

    def turns(self, now: float) -> deque[_Start]:
        """Turns of standing agents that have something to do, and planners."""
        if self.project.paused:
            return deque()
        mine = [agent for agent in self._snapshot.agents if agent.project == self.project.id]
        found: list[_Start] = [
            (agent.waiting_since, JobKind.SERVE, agent.number, None)
            for agent in mine
            if agent.wanted and not agent.in_a_turn and (agent.held_until is None or agent.held_until <= now)
        ]
        found += [
            (plan.waiting_since, JobKind.PLAN, plan.number, None)
            for plan in self._snapshot.plans
            if plan.project == self.project.id
            and plan.wanted
            and not plan.in_a_run
            and (plan.held_until is None or plan.held_until <= now)
        ]
        return deque(sorted(found, key=lambda start: start[0]))

    def optional_reviews(self) -> list[StartJob]:
        mine = sorted(
            ticket for ticket, project in self._snapshot.optional_reviews.items() if project == self.project.id
        )
        return [] if self.project.paused else [StartJob(JobKind.REVIEW, ticket) for ticket in mine]


def _runs_to_end(snapshot: BoardSnapshot, tickets: _Tickets, busy: frozenset[tuple[JobKind, int]]) -> list[StartJob]:
    """Jobs for runs whose ticket left its state while no job followed them. Each must end before a new one starts."""
    left_alone = snapshot.open_runs - tickets.numbers(State.WORKING)
    open_ = [StartJob(JobKind.RUN, ticket) for ticket in sorted(left_alone)]
    read = tickets.numbers(State.REVIEWING) | snapshot.optional_reviews.keys()
    open_ += [StartJob(JobKind.REVIEW, ticket) for ticket in sorted(snapshot.open_reviews - read)]
    # A started turn is followed to its end even if its agent was fired.
    open_ += [StartJob(JobKind.SERVE, agent.number) for agent in snapshot.agents if agent.in_a_turn]
    open_ += [StartJob(JobKind.PLAN, plan.number) for plan in snapshot.plans if plan.in_a_run]
    left = [start for start in open_ if (start.kind, start.subject) not in busy]
    return [replace(start, place=snapshot.open_at.get((start.kind, start.subject), "")) for start in left]


def _wake_times(snapshot: BoardSnapshot, tickets: _Tickets, now: float) -> list[float]:
    parked = [ticket.parked.until for ticket in tickets.begun if ticket.parked and ticket.parked.until is not None]
    held = [agent.held_until for agent in snapshot.agents if agent.wanted and agent.held_until is not None]
    held += [plan.held_until for plan in snapshot.plans if plan.wanted and plan.held_until is not None]
    return [time for time in [*parked, *held, *snapshot.resting.values()] if time > now]
