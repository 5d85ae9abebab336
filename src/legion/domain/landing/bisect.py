"""How changes reach the target, and how a batch of them that is red is searched for its culprit.

A batch is a chain: candidate k holds the first k changes on top of the target. Testing the longest one tests them all.
When it is red, prefixes narrow down who may be to blame. As soon as each suspect has a slot, the whole batch is tested
without each of them: whoever's absence makes it green is the culprit, and all others land at once. Where no absence
helps there are several culprits: prefixes are tested until one change stands alone between green and red, the green
ones land, and what came behind the culprit forms the next batch. The culprit goes back to its agent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum


class LandingMode(Enum):
    MERGE = "merge"
    """A merge commit per change; the agent's own commits stay visible."""
    SQUASH = "squash"
    """One commit per change."""
    REBASE = "rebase"
    """The agent's commits replayed on the target, or squashed where they hold merges; no merge commits."""


@dataclass(frozen=True, kw_only=True)
class LandingIntent:
    """The intent to move the target from `base` to `commit`, written down before it is done."""

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
    """Whether the target moved; None while that is open."""
    before: Mapping[int, str] = field(default_factory=dict)
    """On which commit each ticket was put: what lies between is its change as it landed."""
    since: Mapping[int, float] = field(default_factory=dict)
    """When each ticket came into the queue."""


@dataclass(frozen=True)
class BisectProbe:
    """Something to test: the first `prefix` changes of a batch, without one of them where that is said."""

    prefix: int
    without: int | None = None


@dataclass(frozen=True, kw_only=True)
class BisectState:
    """What is known of a batch of `size` changes: prefix `green` passed, prefix `red` did not."""

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
        """What may land: the most that was tested green. None where that is nothing."""
        if self.spoiler is not None:
            return BisectProbe(self.size, without=self.spoiler)
        return BisectProbe(self.green) if self.green else None

    @property
    def convicted_by(self) -> BisectProbe:
        """The red test that stands against the culprit: what lands, and the culprit on top."""
        return BisectProbe(self.size) if self.spoiler is not None else BisectProbe(self.green + 1)


def probes(search: BisectState, slots: int) -> tuple[BisectProbe, ...]:
    """What to test next, at most `slots` at once, so that the search ends soonest and the most lands."""
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


def learn(search: BisectState, results: Mapping[BisectProbe, bool | None]) -> BisectState:
    """What the tests tell. None: without that change the others do not fit together.

    A red prefix outweighs a longer green one: the earlier fault comes first. Where several may be left out to the same
    end they do not get along with each other, and the last of them came too late.
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
        search,
        green=green,
        red=red,
        spoiler=max(spoilers, default=None),
        left_out=search.left_out or bool(left_out),
    )
