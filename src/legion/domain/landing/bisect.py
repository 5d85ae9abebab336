"""The search for the change that turns a batch red, and how much of the batch may land.

A batch is a chain: candidate k holds the first k changes on top of the target. Testing the longest one tests them all.
If it is red, prefixes narrow down the suspects. As soon as each suspect has a slot, the batch is tested without each of
them: the one without which it is green is the culprit, and all others land at once. If no single absence helps, there
are several culprits: prefixes are tested until one change is alone between green and red, the green ones land, and the
changes after the culprit form the next batch. The culprit goes back to its agent.
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
