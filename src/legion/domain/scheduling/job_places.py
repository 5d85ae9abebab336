"""The jobs of one decision: their kinds, what each asks of its place, and the round that places them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from legion.domain.landing.conflicts import Overlap
from legion.domain.machines.placement import Lack, Nowhere, Placed, PlacementRound, RunPlace, Wanted
from legion.domain.tickets.ticket import State, Ticket

# The kinds of jobs, and the claim on one.


class JobKind(Enum):
    RUN = "run"
    """An agent works on a ticket."""
    CHECK = "check"
    """A ticket's own proofs, or a checkpoint."""
    REVIEW = "review"
    """A reviewer reads a ticket's change."""
    LAND = "land"
    """One project's merge queue."""
    BASELINE = "baseline"
    """The project's checks on the target itself."""
    SERVE = "serve"
    """One turn of a standing agent."""
    PLAN = "plan"
    """A planner works on a plan."""


TAKES_A_SLOT = (JobKind.RUN, JobKind.REVIEW, JobKind.SERVE, JobKind.PLAN)
"""The jobs of agents."""
READS = (JobKind.REVIEW, JobKind.PLAN)
"""Those of them that change nothing."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """The right to run one job. A later generation of a job voids the claim of the earlier one."""

    id: int
    kind: JobKind
    subject: int
    """The ticket (run, check, review), the project (land, baseline) or the agent (serve)."""
    generation: int
    """Counts the starts of this job; 1 is the first."""
    machine: str
    until: float | None
    """When the claim lapses; None: it lasts until it is finished."""
    active: bool
    why: str = ""
    """Why it runs on that machine; empty where there was no choice."""


Job = tuple[JobKind, int]
_OF_TICKETS = (JobKind.RUN, JobKind.REVIEW)
_NO_LABELS: frozenset[str] = frozenset()
FOLLOWS_RUN = "its run is there"
"""The reason of a job that continues a run. The one for which the run was placed there says more."""


class JobPlaces:
    """Asked for one job after the other. Without places nothing is placed: the head alone has slots."""

    def __init__(
        self,
        places: tuple[RunPlace, ...],
        tickets: Mapping[int, Ticket],
        *,
        travels: frozenset[JobKind],
        staying: frozenset[int],
        labels: Mapping[Job, frozenset[str]],
        open_at: Mapping[Job, str],
    ) -> None:
        self._round = PlacementRound(places)
        self._any = bool(places)
        self.several = len(places) > 1
        """Whether there is a choice."""
        self._tickets = tickets
        self._travels = travels
        self._staying = staying
        self._labels = labels
        self._open_at = open_at
        self.choosy = {id for id, ticket in tickets.items() if ticket.spec.on} | {subject for _, subject in labels}
        """Tickets that ask for labels."""

    @property
    def free(self) -> int:
        """Slots of places that take new work."""
        return self._round.free

    def find(self, project: int, kind: JobKind, subject: int) -> Placed | Nowhere | None:
        """The place of the job; None where there is nothing to place."""
        if not self._any or kind not in TAKES_A_SLOT:
            return None
        at = self._open_at.get((kind, subject))
        return Placed(at, FOLLOWS_RUN) if at is not None else self._round.find(self._wanted(project, kind, subject))

    def take(self, kind: JobKind, subject: int, at: str = "") -> None:
        """Count the job there, or where its run is."""
        if kind in TAKES_A_SLOT:
            self._round.take(at or self._open_at.get((kind, subject), ""), reads=kind in READS)

    def could_take(self, ticket: Ticket) -> bool:
        """Whether some place could take a ticket that found none, now or when others have ended."""
        reviewing = ticket.parked is not None and ticket.parked.back_to is State.REVIEWING
        kind = JobKind.REVIEW if reviewing else JobKind.RUN
        found = self._round.find(self._wanted(ticket.project, kind, ticket.id))
        return isinstance(found, Placed) or found.lack is not Lack.MACHINE

    def _wanted(self, project: int, kind: JobKind, subject: int) -> Wanted:
        ticket = self._tickets.get(subject) if kind in _OF_TICKETS else None
        stays = kind not in self._travels or project in self._staying
        # A revert is made by Legion itself.
        stays |= ticket is not None and ticket.spec.undoes is not None
        labels = _NO_LABELS if stays else self._labels.get((kind, subject), _NO_LABELS)
        if ticket is not None and ticket.spec.on and not stays:
            labels |= frozenset(ticket.spec.on)
        return Wanted(project=project, labels=labels, reads=kind in READS, stays=stays)


# Projects, standing agents and plans, as far as decisions depend on them.


@dataclass(frozen=True, kw_only=True)
class ProjectView:
    id: int
    parallel: int
    """How many agents may work on tickets at once."""
    paused: bool
    trusted: bool
    """The person has trusted the commands in the target's legion.toml."""
    baseline_known: bool
    """The target's own checks have receipts, or there are none to run."""
    baseline_red: bool
    upstream_pending: bool
    """The person committed something that is not in the target and was not refused yet."""
    overlap: Overlap = Overlap.OFF
    """What follows if tickets declare the same files."""
    landing_open: bool = False
    """The intent to move the target is stored, and its end is not."""
    readable: bool = True
    """Its stored legion.toml can be parsed. Without that none of its jobs can run."""


@dataclass(frozen=True, kw_only=True)
class AgentView:
    """A standing agent, or a fired one whose last turn has not ended."""

    number: int
    project: int
    wanted: bool
    """It has mail, or must resume an interrupted turn."""
    held_until: float | None = None
    in_a_turn: bool = False
    """A turn has started and its end is not recorded."""
    waiting_since: float = 0.0
    """When its oldest waiting message was sent; 0 for an interrupted turn."""


@dataclass(frozen=True, kw_only=True)
class PlanView:
    """A plan that needs its planner, or whose planner's run has not ended."""

    number: int
    project: int
    wanted: bool
    held_until: float | None = None
    in_a_run: bool = False
    """A run has started and its end is not recorded."""
    waiting_since: float = 0.0


@dataclass(frozen=True)
class StartJob:
    """Claim and start a job. `version` is the ticket's, as decided on; None for a project's job."""

    kind: JobKind
    subject: int
    version: int | None = None
    place: str = ""
    """The name of the machine; empty: the head."""
    why: str = ""
    """Why it is placed there; empty where there was no choice."""


@dataclass(frozen=True)
class ParkTicket:
    """No machine can take it, now or when others have ended."""

    ticket: int
    version: int
    why: str


@dataclass(frozen=True)
class Wake:
    """Unpark a ticket: its time has come, or its cause is gone."""

    ticket: int
    version: int


@dataclass(frozen=True)
class HandBack:
    """Return a claimed ticket to the agent that claimed it: it was sent back, or resumes after a pause."""

    ticket: int
    version: int


Command = StartJob | ParkTicket | Wake | HandBack
