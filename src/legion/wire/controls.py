"""Shapes of a person's controls: edit a ticket, order the merge queue, try changes out, set numbers, freeze."""

from __future__ import annotations

from dataclasses import field

from legion.wire.lazy import dataclass


@dataclass(kw_only=True)
class EditTicket:
    """New values of a ticket's fields; null leaves a field as it is. A list replaces the old one."""

    title: str | None = None
    text: str | None = None
    context: str | None = None
    criteria: str | None = None
    plan: str | None = None
    after: list[int] | None = None
    files: list[str] | None = None
    priority: int | None = None
    gate: str | None = None
    """`auto`, `person`, or empty for that of its epic or project."""


@dataclass(kw_only=True)
class QueueLine:
    """A change that waits to land, or that a person has to land."""

    ticket: int
    title: str
    state: str
    """`queued` in the merge queue, `held` by the person, or `gate` where it waits for `legion land N`."""
    place: int
    """1 lands first; 0 for what does not move by itself."""
    lines: int
    """How many lines it adds and removes."""
    priority: int
    since: float
    doing: str = ""


@dataclass(kw_only=True)
class QueueCheck:
    name: str
    state: str
    """`green`, `red`, `broken`, `runs` or `waits`."""


@dataclass(kw_only=True)
class QueueTestLine:
    """A test that runs now."""

    kind: str
    """`together`: the next batch; `part`: a part of a red one; `ahead`: the next ones, on top of a batch in test;
    `alone`: what blamed a change, once more."""
    tickets: list[int]
    """In the order in which they are put on the target."""
    upstream: bool
    """The person's own commits are tested with them."""
    checks: list[QueueCheck]
    since: float


@dataclass(kw_only=True)
class QueueBlame:
    """A change that a conflict or a failed check keeps from landing."""

    ticket: int
    title: str
    state: str
    """`blamed` while the failed checks are repeated alone; after that the state of the ticket."""
    checks: list[str]
    """The names of the checks that blame it; empty for a conflict."""
    why: str
    at: float


@dataclass(kw_only=True)
class MergeQueuePage:
    schema: str = "legion.queue/1"
    gate: str
    """The project's: `auto` or `person`."""
    changes: list[QueueLine]
    tests: list[QueueTestLine] = field(default_factory=list)
    suspects: list[int] = field(default_factory=list)
    """The tickets of a red batch of which one is to blame, while that is searched."""
    blamed: list[QueueBlame] = field(default_factory=list)
    """The newest first."""


@dataclass(kw_only=True)
class MoveInQueue:
    to: str
    """`first`, `last`, or the number of the ticket that it goes before."""


@dataclass(kw_only=True)
class TryChanges:
    """Without tickets: all changes that are green and have not landed."""

    cwd: str
    tickets: list[int] = field(default_factory=list)


@dataclass(kw_only=True)
class TriedChanges:
    """A tree of its own with changes on the target. The person may do with it what they like."""

    schema: str = "legion.tried/1"
    path: str
    commit: str
    target: str
    tickets: list[int]
    """Whose changes it holds, in the order in which they were merged."""
    left_out: dict[str, str] = field(default_factory=dict)
    """By ticket: why its change is not in the tree."""
    message: str


@dataclass(kw_only=True)
class SetNumbers:
    """Null leaves a number as it is; 0 returns to that of legion.toml."""

    cwd: str
    workers: int | None = None
    retries: int | None = None


@dataclass(kw_only=True)
class Numbers:
    schema: str = "legion.numbers/1"
    workers: int
    workers_set: bool
    """Whether the person set it; else it is legion.toml's."""
    retries: int
    retries_set: bool
    at_work: int
    """How many agents work on tickets of the project now."""
    message: str


@dataclass(kw_only=True)
class EpicGate:
    cwd: str
    epic: str
    gate: str
    """`auto`, `person`, or empty for the project's."""
