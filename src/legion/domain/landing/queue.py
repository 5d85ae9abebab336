"""The merge queue's order, how many changes are tested together, and the search for the change that turns a batch red.

The place that a person chose counts first, then the priority. Of equal priority, a change that lost a conflict goes
first, the one that lost most often before the others: so it does not lose to the same neighbours again. Then the
smaller change goes first: it delays fewer, and of two that conflict the bigger one stays with the agent that knows more
about it. A change that was overtaken too often moves to the front, oldest first. This prevents starvation.

A batch tells most if it is as likely to be green as to be red. A red batch may contain the one bad change of many;
the second red one in a row is followed by half as many changes, and a green one by up to twice as many. With one bad
change in five, batches soon hold about three.

A batch is a chain: candidate k holds the first k changes on top of the target. Testing the longest one tests them all.
If it is red, prefixes narrow down the suspects. As soon as each suspect has a slot, the batch is tested without each of
them: the one without which it is green is the culprit, and all others land at once. If no single absence helps, there
are several culprits: prefixes are tested until one change is alone between green and red, the green ones land, and the
changes after the culprit form the next batch. The culprit goes back to its agent.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from legion.domain.checks import Check
from legion.domain.review.path_patterns import matches
from legion.domain.tickets.spec import LandingGate
from legion.domain.tickets.ticket import Ticket


class LandingMode(Enum):
    MERGE = "merge"
    """A merge commit per change; the agent's own commits stay visible."""
    SQUASH = "squash"
    """One commit per change."""
    REBASE = "rebase"
    """The agent's commits replayed on the target, or squashed if they contain merges; no merge commits."""


@dataclass(frozen=True, kw_only=True)
class LandingIntent:
    """The intent to move the target from `base` to `commit`, stored before the move."""

    id: int
    project: int
    base: str
    commit: str
    tree: str
    tickets: Mapping[int, str]
    """What it brings: each ticket with the commit that holds its change. Empty for the person's own commits alone."""
    opened_at: float
    closed_at: float | None = None
    landed: bool | None = None
    """Whether the target moved; None while that is not recorded."""
    before: Mapping[int, str] = field(default_factory=dict)
    """The commit that each ticket was put on: the difference to its own is its change as it landed."""
    since: Mapping[int, float] = field(default_factory=dict)
    """When each ticket entered the queue."""


@dataclass(frozen=True)
class BisectProbe:
    """A part to test: the first `prefix` changes of a batch, without the one at `without`."""

    prefix: int
    without: int | None = None


@dataclass(frozen=True, kw_only=True)
class BisectState:
    """The knowledge about a batch of `size` changes: prefix `green` passed, prefix `red` did not."""

    size: int
    green: int = 0
    red: int | None = None
    spoiler: int | None = None
    """All the others passed together without this one."""
    left_out: bool = False
    """Whether each suspect has been left out once."""

    @property
    def culprit(self) -> int | None:
        """The position of the change that turns the batch red, once it is known."""
        if self.spoiler is not None:
            return self.spoiler
        return self.green if self.red == self.green + 1 else None

    @property
    def settled(self) -> bool:
        return self.green == self.size or self.culprit is not None

    @property
    def lands(self) -> BisectProbe | None:
        """The largest part that was tested green and may land; None if there is none."""
        if self.spoiler is not None:
            return BisectProbe(self.size, without=self.spoiler)
        return BisectProbe(self.green) if self.green else None

    @property
    def convicted_by(self) -> BisectProbe:
        """The red test that blames the culprit: the part that lands, with the culprit on top."""
        return BisectProbe(self.size) if self.spoiler is not None else BisectProbe(self.green + 1)


def probes(search: BisectState, slots: int) -> tuple[BisectProbe, ...]:
    """The parts to test next, at most `slots` at once, so that the search ends soonest and the most lands."""
    if search.settled:
        return ()
    if search.red is None:
        return (BisectProbe(search.size),)
    suspects = range(search.green, search.red)
    chosen = [] if search.left_out or len(suspects) > slots else [_all_but(search.size, one) for one in suspects]
    chosen += [BisectProbe(prefix) for prefix in _spread(search.green, search.red, slots - len(chosen))]
    return tuple(dict.fromkeys(chosen))


def _all_but(size: int, position: int) -> BisectProbe:
    return BisectProbe(size - 1) if position == size - 1 else BisectProbe(size, without=position)


def _spread(green: int, red: int, slots: int) -> tuple[int, ...]:
    """Prefixes between two known ones, at equal distances."""
    between = red - green - 1
    count = min(slots, between)
    return tuple(green + round(step * (between + 1) / (count + 1)) for step in range(1, count + 1))


def with_results(search: BisectState, results: Mapping[BisectProbe, bool | None]) -> BisectState:
    """The knowledge with the results of these tests. None: without that change the others do not merge.

    A red prefix outweighs a longer green one: the earlier fault comes first. If the batch is green without any one of
    several changes, these are incompatible with each other, and the last of them is to blame.
    """
    prefixes = {probe.prefix: passed for probe, passed in results.items() if probe.without is None}
    red = min(
        [prefix for prefix, passed in prefixes.items() if not passed] + ([search.red] if search.red else []),
        default=None,
    )
    greens = [prefix for prefix, passed in prefixes.items() if passed and (red is None or prefix < red)]
    green = max([search.green, *greens])
    left_out = {probe.without: passed for probe, passed in results.items() if probe.without is not None}
    # The prefix without the last one leaves the last one out.
    spoilers = [position for position, passed in left_out.items() if passed and green < search.size - 1]
    return replace(
        search, green=green, red=red, spoiler=max(spoilers, default=None), left_out=search.left_out or bool(left_out)
    )


PATIENCE = 3
"""After so many landings with a later change in them, a change counts as overtaken too often."""


@dataclass(frozen=True, kw_only=True)
class QueueEntry:
    """A change in the queue."""

    ticket: int
    priority: int
    since: float
    lines: int
    """How many it adds and removes."""
    overtaken: int = 0
    """Landings that brought a change that came later."""
    lost: int = 0
    """How often it was sent back because of a conflict."""
    place: int = 0
    """Where the person put it: below 0 in front of the others, above 0 behind them."""

    @property
    def overdue(self) -> bool:
        return self.overtaken >= PATIENCE


def ordered(waiting: Iterable[QueueEntry]) -> tuple[QueueEntry, ...]:
    return tuple(sorted(waiting, key=_rank))


def _rank(one: QueueEntry) -> tuple[int, int, int, bool, int, float, int]:
    size = 0 if one.overdue else one.lines
    return one.place, -one.priority, -one.lost, not one.overdue, size, one.since, one.ticket


class QueueTestKind(Enum):
    """Why the merge queue runs checks."""

    TOGETHER = "together"
    """The next batch, all of it."""
    PART = "part"
    """A part of a red batch: which change is to blame?"""
    AHEAD = "ahead"
    """The changes behind a batch that is still in test, on top of it."""
    ALONE = "alone"
    """What blamed a change, once more and with no other test in parallel."""


class QueueGoal(Enum):
    """Where a person moves a change in the queue."""

    FIRST = "first"
    LAST = "last"


def moved(order: Sequence[QueueEntry], ticket: int, to: QueueGoal | int) -> dict[int, int]:
    """The new places of the entries that get one, by ticket, so that `ticket` is first, last, or just before the
    ticket `to`. Those in front of it keep their order; later arrivals line up behind.
    """
    if to is QueueGoal.LAST:
        return {ticket: max(0, *(one.place for one in order)) + 1}
    front = [one.ticket for one in order if one.ticket != ticket]
    before = front[: front.index(to)] if isinstance(to, int) else []
    ahead = [*before, ticket]
    lowest = min(0, *(one.place for one in order))
    return {number: lowest - len(ahead) + position for position, number in enumerate(ahead)}


def newest_landed(landings: Iterable[LandingIntent]) -> list[float]:
    """When the last change of each landing entered the queue, in ascending order; only of those that landed."""
    return sorted(max(one.since.values()) for one in landings if one.landed and one.since)


def overtaken(since: float, newest: Sequence[float]) -> int:
    """How many landings brought a change that entered the queue after this time; `newest` is from `newest_landed`."""
    return len(newest) - bisect_right(newest, since)


def room_after(*, reds: int, tried: int, room: int, most: int) -> int:
    """How many changes the next batch may hold, after one of `tried` where there was `room` for so many.

    That one was the last of `reds` red batches in a row, or green if `reds` is 0. A green batch proves no more than
    twice its own size. A single change that is red says nothing about how many fit together, only that there are bad
    ones: the room is halved.
    """
    if not reds:
        return min(most, max(room, 2 * tried))
    if reds == 1:
        return min(most, room)
    return min(most, max(1, (tried if tried > 1 else room) // 2))


# The destination of landed work: only the hub, a branch elsewhere, or a pull request; and the gate before it.


class PullUnit(Enum):
    """What becomes one pull request, with the target `pr`."""

    TICKET = "ticket"
    EPIC = "epic"
    """All tickets of an epic together; a ticket without an epic still has its own."""


class LandingTarget(Enum):
    LOCAL = "local"
    """The target branch is in the hub; `legion collect` brings it to the person."""
    BRANCH = "branch"
    """Each landed commit is pushed to the branch of the project's forge."""
    PR = "pr"
    """A proven change becomes a pull request, and lands when that is merged."""


def gate_of(ticket: Ticket, *, epic: LandingGate | None, project: LandingGate) -> LandingGate:
    """The ticket's own counts first, then that of its epic, then the project's. An undo never waits: the person asked
    for exactly that change.
    """
    if ticket.spec.undoes is not None or ticket.spec.checkpoint:
        return LandingGate.AUTO
    return ticket.spec.gate or epic or project


def gate_key(ticket: Ticket, *, again: bool = False) -> str:
    """The key of the question about the present change. `again`: of a later one, where the first is settled."""
    assert ticket.change is not None, "only a change waits at the gate"
    return f"gate:{ticket.id}/{ticket.spared}/{ticket.change.commit}{'/again' if again else ''}"


# Which of a project's checks a change needs: in a repository of several packages, those of what it touches.

_MOST_NAMES, _LONGEST = 100_000, 4096
"""Where links form a circle, a file has names without end."""


def needed(checks: Iterable[Check], changed: Iterable[str]) -> tuple[Check, ...]:
    """The checks that a change of these files needs.

    A check with `paths` is left out only if every changed file is in the paths of others: a file that no check names,
    a lock file at the root for instance, may matter to each of them. A pattern that starts with a wildcard names none:
    that all Python files are linted does not say whose they are.
    """
    every, files = tuple(checks), tuple(changed)
    named = [glob for check in every for glob in check.paths if not glob.startswith("*")]
    if not files or not all(matches(file, named) for file in files):
        return every
    return tuple(check for check in every if not check.paths or any(matches(file, check.paths) for file in files))


def seen_through(links: Mapping[str, str], changed: Iterable[str]) -> tuple[str, ...]:
    """The changed files by every name that they have: a link to a folder shows its files in another place, too."""
    places = {link: _place(link, to) for link, to in links.items()}
    found, new = dict.fromkeys(changed), list(changed)
    while new and len(found) < _MOST_NAMES:
        file = new.pop()
        for link, place in places.items():
            if f"{file}/".startswith(place):
                name = f"{link}/{f'{file}/'.removeprefix(place)}".rstrip("/")
                if name not in found and len(name) < _LONGEST:
                    found[name] = None
                    new.append(name)
    return tuple(found)


def _place(link: str, to: str) -> str:
    """Where a link leads, with a slash at its end; empty for the root. A way out of the repository ends there."""
    parts = [] if to.startswith("/") else link.split("/")[:-1]
    for part in to.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "".join(f"{part}/" for part in parts)
