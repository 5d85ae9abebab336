"""Conflict rules: tickets that declare the same files, predicted conflicts, and how well they were predicted.

A prediction is a pair: two tickets, or a ticket and the code that has landed since it started (`LANDED`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from legion.domain.events import Event, EventKind
from legion.domain.landing.definitions import meeting
from legion.domain.review.path_patterns import matches, meet
from legion.domain.tickets.ticket import Cause, State, Ticket

LANDED = 0
"""In place of a ticket in a pair: the target."""

Pair = tuple[int, int]


class Overlap(Enum):
    """What follows if two tickets declare the same files."""

    OFF = "off"
    """Nothing."""
    ADVICE = "advice"
    """Tickets without overlap go first."""
    RULE = "rule"
    """They are never worked on at the same time."""


AT_WORK = frozenset({State.WORKING, State.CHECKING, State.REVIEWING, State.LANDING})
"""States in which a change is on its way into the target."""


def overlapping(ticket: Ticket, others: Iterable[Ticket]) -> tuple[int, ...]:
    """Those of the others that declare files which this one declares too. A ticket without files overlaps none."""
    if not ticket.spec.files:
        return ()
    return tuple(other.id for other in others if other.id != ticket.id and meet(ticket.spec.files, other.spec.files))


def ordered(
    ready: Sequence[Ticket], at_work: Iterable[Ticket], overlap: Overlap, lanes: Mapping[int, int] | None = None
) -> list[Ticket]:
    """Tickets that may start, in order, given those at work and those that start before them.

    `lanes`: by ticket, the race that it is an attempt in. Only one of a race lands, so its lanes never meet.
    """
    at_work = list(at_work)
    race_of = lanes or {}
    if overlap is Overlap.OFF:
        return list(ready)
    taken = list(at_work)
    free: list[Ticket] = []
    waiting: list[Ticket] = []
    for ticket in ready:
        race = race_of.get(ticket.id)
        if overlapping(ticket, [other for other in taken if race is None or race_of.get(other.id) != race]):
            waiting.append(ticket)
        else:
            free.append(ticket)
            taken.append(ticket)
    return free if overlap is Overlap.RULE else [*free, *waiting]


@dataclass(frozen=True, kw_only=True)
class Coupled:
    """A ticket that will change what others change, and does not start while they do."""

    behind: tuple[int, ...]
    """Those that go first."""
    names: tuple[str, ...]
    stacks: bool = False
    """It can start on the proven change of that one."""

    @property
    def why(self) -> str:
        others = ", ".join(f"#{id}" for id in self.behind)
        named = ", ".join(name.partition("::")[2] or name.partition("::")[0] for name in self.names[:3])
        verb = "changes" if len(self.behind) == 1 else "change"
        return f"waits for {others}, which {verb} {named}, too"


def coupled(
    ready: Iterable[Ticket],
    at_work: Iterable[Ticket],
    begun: Iterable[Ticket],
    guesses: Mapping[int, frozenset[str]],
    lanes: Mapping[int, int] | None = None,
    brought: Mapping[int, int] | None = None,
) -> dict[int, Coupled]:
    """Of tickets that may start, in order: those that wait for others, at work or before them, with the same claims.

    `begun`: at work or parked. A first attempt may start on a proven change, but not on two. `guesses`: by ticket, what
    its text claims. A change that is proposed claims what it touches. Attempts in one race never wait for each other.
    `brought`: by ticket, the one whose change brings its work; it starts on none.
    """
    race_of = lanes or {}
    proven = {one.id: one for one in begun if _is_proven(one)}
    there = ({one.id: one for one in at_work} | proven).values()
    taken = [(one, claimed) for one in there if (claimed := claims_of(one, guesses))]
    waiting: dict[int, Coupled] = {}
    for ticket in ready:
        mine, race = claims_of(ticket, guesses), race_of.get(ticket.id)
        if not mine:
            continue
        met = {
            other.id: shared
            for other, theirs in taken
            if (race is None or race_of.get(other.id) != race) and (shared := meeting(mine, theirs))
        }
        if met and not ticket.spec.alone:
            names = sorted(frozenset[str]().union(*met.values()))
            may = ticket.base is None and ticket.plant is None and (brought or {}).get(ticket.id) not in met
            stacks = len(met) == 1 and met.keys() <= proven.keys() and may
            waiting[ticket.id] = Coupled(behind=tuple(sorted(met)), names=tuple(names), stacks=stacks)
        if not met or ticket.spec.alone or waiting[ticket.id].stacks:
            taken.append((ticket, mine))
    return waiting


def may_be_brought(ticket: Ticket, mine: frozenset[str], landed: Sequence[Ticket], *, waited: bool) -> bool:
    """Whether proofs could show, before its first attempt, that one of these brought its work: they landed since it was
    dispatched. It `waited` for one with the same claims, or one of them changed what it claims or declares.
    """
    if ticket.attempt or not ticket.spec.provable:
        return False
    touched = {claim.partition("::")[0] for other in landed for claim in other.claims}
    declared = any(matches(path, ticket.spec.files) for path in touched)
    return bool(landed) and (waited or declared or any(meeting(mine, other.claims) for other in landed))


def _is_proven(ticket: Ticket) -> bool:
    """Behind its own proofs."""
    state = ticket.parked.back_to if ticket.parked is not None else ticket.state
    return state in (State.REVIEWING, State.LANDING) and ticket.change is not None


def claims_of(ticket: Ticket, guesses: Mapping[int, frozenset[str]]) -> frozenset[str]:
    if ticket.change is not None and ticket.claims:
        return frozenset(ticket.claims)
    return guesses.get(ticket.id, frozenset()).union(ticket.claims)


@dataclass(frozen=True, kw_only=True)
class ConflictSpan:
    """A place that both sides changed, in line numbers of each side's own file; 0 to 0 for no lines."""

    path: str
    mine: tuple[int, int]
    theirs: tuple[int, int]
    name: str = ""
    """The definition, if known."""


@dataclass(frozen=True, kw_only=True)
class PredictedConflict:
    """Two changes that will conflict if both land as they are. `theirs` may be LANDED."""

    mine: int
    theirs: int
    places: tuple[ConflictSpan, ...]

    @property
    def pair(self) -> Pair:
        return (self.mine, self.theirs)

    def seen_from(self, ticket: int) -> PredictedConflict:
        """The same with this ticket as the first of the two."""
        if ticket == self.mine:
            return self
        turned = tuple(replace(one, mine=one.theirs, theirs=one.mine) for one in self.places)
        return PredictedConflict(mine=self.theirs, theirs=self.mine, places=turned)


@dataclass(frozen=True, kw_only=True)
class PredictionChange:
    """What one prediction adds to the earlier ones."""

    new: tuple[PredictedConflict, ...]
    gone: frozenset[Pair]
    known: frozenset[Pair]
    """The pairs that are recorded by now."""


def compare(
    conflicts: Sequence[PredictedConflict],
    known: Collection[Pair],
    *,
    seen: Collection[int],
    at_work: Mapping[int, State],
) -> PredictionChange:
    """`conflicts` is what a prediction found, `known` what was recorded before, `seen` the tickets that it could
    read.
    """
    found = {one.pair for one in conflicts}
    there = {*seen, LANDED}
    left_over = {pair for pair in known if not set(pair) <= there and set(pair) & set(at_work)}
    # A ticket that conflicted with one that has landed since conflicts with the target now, which is nothing new. The
    # target moves a moment before its tickets are done, so a landing ticket may be in it already.
    not_new = {ticket for pair in left_over for ticket in pair}
    not_new |= {mine for pair in known for mine, theirs in (pair, pair[::-1]) if at_work.get(theirs) is State.LANDING}
    new = tuple(
        one for one in conflicts if one.pair not in known and not (one.theirs == LANDED and one.mine in not_new)
    )
    return PredictionChange(
        new=new,
        gone=frozenset(pair for pair in known if set(pair) <= there and pair not in found),
        known=frozenset(left_over | (found & set(known)) | {one.pair for one in new}),
    )


@dataclass(frozen=True, kw_only=True)
class PredictionScore:
    """Predictions against outcomes."""

    predicted: int = 0
    """Pairs."""
    came_true: int = 0
    """One of the pair was sent back for a conflict, with the other in the target."""
    settled: int = 0
    """The pair no longer conflicted before either was sent back."""
    unforeseen: int = 0
    """Sent back for a conflict that was not predicted."""


def score(events: Iterable[Event]) -> PredictionScore:
    """Of a project's events, oldest first."""
    open_pairs: set[tuple[int, int]] = set()
    counted: set[tuple[int, int]] = set()
    true: set[tuple[int, int]] = set()
    settled: set[tuple[int, int]] = set()
    unforeseen = 0
    for event in events:
        if event.kind in (EventKind.CONFLICT_PREDICTED, EventKind.CONFLICT_GONE) and event.ticket is not None:
            pair = (event.ticket, _number(event.data.get("with")))
            if event.kind is EventKind.CONFLICT_PREDICTED:
                counted.add(pair)
                open_pairs.add(pair)
            elif pair in open_pairs:
                open_pairs.discard(pair)
                settled.add(pair)
        elif event.kind is EventKind.TICKET_MOVED and event.data.get("cause") == Cause.CONFLICT.value:
            found = {pair for pair in open_pairs if event.ticket in pair}
            unforeseen += not found
            true |= found
            open_pairs -= found
    return PredictionScore(
        predicted=len(counted), came_true=len(true), settled=len(settled - true), unforeseen=unforeseen
    )


def _number(value: object) -> int:
    return value if isinstance(value, int) else LANDED
