"""A world of dice around `decide`: projects, tickets and jobs in memory, and everything that may happen to them."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from legion.domain.scheduling.admission import AdmissionState
from legion.domain.scheduling.decide import BoardSnapshot, JobKind, ProjectView, decide
from legion.domain.scheduling.job_places import Command, HandBack, ParkTicket, StartJob, Wake
from legion.domain.scheduling.throttle import Throttle, ThrottleState
from legion.domain.tickets import board
from legion.domain.tickets.ladder import next_try
from legion.domain.tickets.spec import TicketSpec
from legion.domain.tickets.ticket import (
    ENDED,
    Change,
    Confirm,
    Fail,
    Inspect,
    Land,
    Park,
    ParkReason,
    Propose,
    Prove,
    Resume,
    Start,
    State,
    Step,
    Stop,
    Submit,
    Ticket,
    Unpark,
    move,
)

Job = tuple[JobKind, int]


class World:
    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.now = 0.0
        self.slots = chance.randint(1, 4)
        self.jobs: set[Job] = set()
        self.resting: dict[Job, float] = {}
        self.open_runs: set[int] = set()
        self.projects = {
            number: ProjectView(
                id=number,
                parallel=chance.randint(1, 3),
                paused=False,
                trusted=True,
                baseline_known=False,
                baseline_red=False,
                upstream_pending=False,
            )
            for number in range(1, chance.randint(1, 2) + 1)
        }
        self.limited: set[int] = set()
        """Tickets of an account that meets its limit now and then."""
        self.closed_until = 0.0
        self.tickets: dict[int, Ticket] = {}
        for number in range(1, chance.randint(1, 10) + 1):
            self._dispatch(number)

    def _dispatch(self, number: int) -> None:
        project = self.chance.choice(list(self.projects))
        before = [one.id for one in self.tickets.values() if one.project == project]
        spec = TicketSpec(
            title="",
            text="",
            after=tuple(self.chance.sample(before, min(len(before), self.chance.randint(0, 2)))),
            checkpoint=self.chance.random() < 0.15,
            priority=self.chance.randint(-1, 1),
            max_attempts=self.chance.randint(1, 3),
        )
        self.tickets[number] = move(Ticket(id=number, project=project, spec=spec), Submit(), self.now)
        if self.chance.random() < 0.4:
            self.limited.add(number)

    def states(self) -> dict[int, State]:
        return {one.id: one.state for one in self.tickets.values()}

    def edges(self) -> dict[int, tuple[int, ...]]:
        return {one.id: one.spec.after for one in self.tickets.values()}

    def snapshot(self) -> BoardSnapshot:
        """As the store loads it."""
        live = tuple(one for one in self.tickets.values() if not one.ended)
        before = {other for one in live for other in one.spec.after}
        return BoardSnapshot(
            projects=tuple(self.projects.values()),
            tickets=live,
            ended={other: self.tickets[other].state for other in before if self.tickets[other].ended},
            jobs=frozenset(self.jobs),
            slots=self.slots,
            open_runs=frozenset(self.open_runs),
            resting=dict(self.resting),
            admission=self._admission(),
        )

    def _admission(self) -> AdmissionState:
        closed = Throttle(stance=ThrottleState.CLOSED, most=0, until=self.closed_until, why="used")
        throttles = {"account": closed} if self._at_the_limit() else {}
        return AdmissionState(accounts=dict.fromkeys(self.limited, ("account",)), throttles=throttles)

    def _at_the_limit(self) -> bool:
        return self.now < self.closed_until

    def settle(self) -> None:
        """Do what is decided until nothing more is, as the daemon does after every event."""
        for _ in range(3):
            commands = decide(self.snapshot(), self.now).commands
            if not commands:
                break
            for command in commands:
                self._apply(command)
            self._keep_the_limits(
                [c for c in commands if isinstance(c, StartJob) and c.kind is JobKind.RUN and c.version]
            )
        # Waking a ticket is news, and so is what its start leads to; then there is nothing left to say.
        assert decide(self.snapshot(), self.now).commands == ()
        self._nobody_is_forgotten()

    def _apply(self, command: Command) -> None:
        assert not isinstance(command, HandBack | ParkTicket), "nobody claims tickets or asks for a machine here"
        if isinstance(command, Wake):
            assert self.tickets[command.ticket].version == command.version
            self._move(command.ticket, Unpark())
            return
        job = (command.kind, command.subject)
        assert job not in self.jobs, "what runs is not started again"
        assert self.resting.get(job, self.now) <= self.now
        self.jobs.add(job)
        if command.version is None:
            return
        ticket = self.tickets[command.subject]
        assert ticket.version == command.version
        project = self.projects[ticket.project]
        assert project.trusted
        if ticket.state is State.QUEUED:
            assert not project.paused
            assert not project.upstream_pending
            assert command.kind is JobKind.CHECK or not (self._at_the_limit() and ticket.id in self.limited)
            assert all(self.tickets[other].state is State.DONE for other in ticket.spec.after)
            self._move(ticket.id, Start("target") if command.kind is JobKind.RUN else Inspect())
            if command.kind is JobKind.RUN:
                assert ticket.id not in self.open_runs, "never two agents in one worktree"
                self.open_runs.add(ticket.id)

    def _keep_the_limits(self, started: list[StartJob]) -> None:
        """Nobody is started beyond them. Runs that only have to be brought to their end need no room."""
        runs = [self.tickets[subject] for kind, subject in self.jobs if kind is JobKind.RUN]
        assert not started or len(runs) <= self.slots
        for project in {self.tickets[start.subject].project for start in started}:
            assert sum(1 for ticket in runs if ticket.project == project) <= self.projects[project].parallel

    def _nobody_is_forgotten(self) -> None:
        """Whoever could run and does not must have a reason."""
        runs = [self.tickets[subject] for kind, subject in self.jobs if kind is JobKind.RUN]
        for ticket in self.tickets.values():
            project = self.projects[ticket.project]
            kind = JobKind.CHECK if ticket.spec.checkpoint or ticket.state is State.CHECKING else JobKind.RUN
            job = (kind, ticket.id)
            if ticket.state not in (State.QUEUED, State.WORKING, State.CHECKING) or job in self.jobs:
                continue
            held = project.paused or project.upstream_pending or not board.ready(ticket.spec.after, self.states())
            limited = kind is JobKind.RUN and self._at_the_limit() and ticket.id in self.limited
            if ticket.state is State.QUEUED and (held or limited):
                continue
            beside = sum(1 for other in runs if other.ended or other.project == project.id)
            crowded = len(runs) >= self.slots or beside >= project.parallel
            assert (kind is JobKind.RUN and crowded) or self.resting.get(job, 0.0) > self.now or not project.trusted
        for number in self.open_runs:
            job = (JobKind.RUN, number)
            ended_by_somebody = job in self.jobs or self.resting.get(job, 0.0) > self.now
            assert ended_by_somebody or self.tickets[number].state is State.WORKING, "every run gets an end"
        for project in self.projects.values():
            landing = any(t.state is State.LANDING and t.project == project.id for t in self.tickets.values())
            job = (JobKind.LAND, project.id)
            idle = job not in self.jobs and self.resting.get(job, 0.0) <= self.now
            assert not (landing and idle and project.trusted)

    def over(self) -> bool:
        """Everything has ended or waits for what never will; nothing runs and nothing is about to wake."""
        hopeless = board.hopeless(self.edges(), self.states())
        return not self.open_runs and all(
            one.ended or (one.id in hopeless and one.state is State.QUEUED) for one in self.tickets.values()
        )

    def something_happens(self) -> None:
        """Mostly a job ends; sometimes the world interferes. Troubles grow rare, so that it can end."""
        self.now += self.chance.random()
        calm = self.now > 60
        if not calm and self.chance.random() < 0.15:
            self._interfere()
        elif self.jobs:
            job = self.chance.choice(sorted(self.jobs, key=lambda one: (one[0].value, one[1])))
            self.jobs.discard(job)
            if not calm and self.chance.random() < 0.1:
                self.resting[job] = self.now + 3
            else:
                self._finish(job, calm)
        else:
            self._wait()

    def _wait(self) -> None:
        """Nothing runs: time passes, and at last the person takes care of what only they can."""
        wake_at = decide(self.snapshot(), self.now).wake_at
        if wake_at is not None:
            self.now = wake_at
            return
        for number, project in self.projects.items():
            self.projects[number] = replace(project, paused=False, trusted=True, baseline_known=False)
        for ticket in list(self.tickets.values()):
            if ticket.parked is not None and ticket.parked.reason is ParkReason.PAUSED:
                self._move(ticket.id, Unpark())

    def _interfere(self) -> None:
        number = self.chance.choice(list(self.projects))
        project = self.projects[number]
        live = [one for one in self.tickets.values() if not one.ended and one.state is not State.PARKED]
        match self.chance.randint(0, 6):
            case 0:  # the daemon restarts: its jobs ended with it
                self.jobs.clear()
                self.resting.clear()
            case 1:
                self.projects[number] = replace(project, paused=not project.paused)
            case 2:  # the person changes legion.toml and trusts it later
                self.projects[number] = replace(project, trusted=not project.trusted)
            case 3:
                self.projects[number] = replace(project, upstream_pending=True)
            case 4 if live:
                self._move(self.chance.choice(live).id, Park(ParkReason.PAUSED, "a person said so"))
            case 5 if live and self.chance.random() < 0.3:
                self._move(self.chance.choice(live).id, Stop())
            case 6:
                self.closed_until = self.now + 5

    def _finish(self, job: Job, calm: bool) -> None:
        kind, subject = job
        if kind is JobKind.BASELINE:
            red = not calm and self.chance.random() < 0.2
            self.projects[subject] = replace(self.projects[subject], baseline_known=True, baseline_red=red)
        elif kind is JobKind.LAND:
            self._land(subject, calm)
        else:
            if kind is JobKind.RUN:
                self.open_runs.discard(subject)
            step = self._outcome(self.tickets[subject], kind, calm)
            if step is not None:
                self._move(subject, step)

    def _outcome(self, ticket: Ticket, kind: JobKind, calm: bool) -> Step | None:
        """None where a person moved the ticket meanwhile: then the job's result is void."""
        luck = 1.0 if calm else self.chance.random()
        if kind is JobKind.RUN and ticket.state is State.WORKING:
            if luck < 0.15:
                return Resume("lost")
            if luck < 0.3:
                return Park(ParkReason.LIMIT, "limit", until=self.now + 2)
            return next_try(ticket, "failed", "f") if luck < 0.5 else Propose(Change(base="b", commit="c"))
        if kind is JobKind.CHECK and ticket.state is State.CHECKING:
            if ticket.spec.checkpoint:
                return Fail("red") if luck < 0.2 else Confirm("c")
            return next_try(ticket, "red", "f") if luck < 0.3 else Prove()
        return None

    def _land(self, project: int, calm: bool) -> None:
        for ticket in [one for one in self.tickets.values() if one.project == project]:
            if ticket.state is not State.LANDING:
                continue
            luck = 1.0 if calm else self.chance.random()
            if self.projects[project].baseline_red and luck < 0.5:
                self._move(ticket.id, Park(ParkReason.RED_BASELINE, "the target is red"))
            else:
                self._move(ticket.id, next_try(ticket, "conflict", "f") if luck < 0.3 else Land("c"))
        self.projects[project] = replace(self.projects[project], upstream_pending=False)

    def _move(self, number: int, step: Step) -> None:
        before = self.tickets[number]
        assert before.state not in ENDED
        self.tickets[number] = move(before, step, self.now)
