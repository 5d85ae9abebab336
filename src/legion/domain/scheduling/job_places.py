"""Places of the jobs of one decision: what each job asks of its place, and the round that places them."""

from __future__ import annotations

from collections.abc import Mapping

from legion.domain.machines.placement import Lack, Nowhere, Placed, PlacementRound, RunPlace, Wanted
from legion.domain.scheduling.job_kinds import READS, TAKES_A_SLOT, JobKind
from legion.domain.tickets.ticket import State, Ticket

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
