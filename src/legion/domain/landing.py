"""The merge queue's policy: in which order changes are tried together, and how a red batch is searched for its culprit.

A batch is a chain: candidate k holds the first k changes on top of the target. Testing the longest one tests them all.
When it is red, prefixes are tested until one change stands alone between green and red. Prefixes found green land at
once; the culprit goes back to its agent; what came behind it forms the next batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from legion.domain.tickets import Ticket


class Mode(Enum):
    MERGE = "merge"
    """A merge commit per change; the agent's own commits stay visible."""
    SQUASH = "squash"
    """One commit per change."""
    REBASE = "rebase"
    """The agent's commits replayed on the target, or squashed where they hold merges; no merge commits."""


def order(tickets: Iterable[Ticket], most: int) -> tuple[Ticket, ...]:
    """The next batch: higher priority first, then who has waited longest."""
    return tuple(sorted(tickets, key=lambda ticket: (-ticket.wish.priority, ticket.moved_at, ticket.id))[:most])


@dataclass(frozen=True, kw_only=True)
class Landing:
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


@dataclass(frozen=True, kw_only=True)
class Search:
    """What is known of a batch of `size` changes: prefix `green` passed, prefix `red` did not."""

    size: int
    green: int = 0
    red: int | None = None

    @property
    def culprit(self) -> int | None:
        """The position of the change that turns the batch red, once it is known."""
        return self.green if self.red == self.green + 1 else None

    @property
    def settled(self) -> bool:
        return self.green == self.size or self.culprit is not None


def probes(search: Search, slots: int) -> tuple[int, ...]:
    """The prefixes to test next, at most `slots` at once, so that the search ends soonest."""
    if search.settled:
        return ()
    if search.red is None:
        return (search.size,)
    between = search.red - search.green - 1
    count = min(max(slots, 1), between)
    return tuple(
        search.green + round(between_step * (between + 1) / (count + 1)) for between_step in range(1, count + 1)
    )


def learn(search: Search, results: Mapping[int, bool]) -> Search:
    """What the tested prefixes tell. A red prefix outweighs a longer green one: the earlier fault comes first."""
    red = min(
        [prefix for prefix, passed in results.items() if not passed] + ([search.red] if search.red else []),
        default=None,
    )
    greens = [prefix for prefix, passed in results.items() if passed and (red is None or prefix < red)]
    return replace(search, green=max([search.green, *greens]), red=red)
