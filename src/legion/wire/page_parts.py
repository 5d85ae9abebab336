"""Parts of a ticket's page: evidence, predicted conflicts, weakened tests, its environment."""

from __future__ import annotations

from dataclasses import field

from legion.wire.lazy import dataclass


@dataclass(kw_only=True)
class PredictedConflictLine:
    """A place that two changes in work both touch. Lines are those of each side's own file; 0 where there are none."""

    ticket: int
    """The other one; 0 is the landed code."""
    path: str
    first: int
    last: int
    their_first: int
    their_last: int


@dataclass(kw_only=True)
class ReversalLine:
    idle: list[str]
    """Commands that are green without the change, too: they prove nothing about it."""
    unproven: list[UnprovenLine]
    """Pieces of the change without which everything is still green."""
    tried: int
    left: int
    """Pieces for which no time was left."""


@dataclass(kw_only=True)
class UnprovenLine:
    path: str
    line: int
    lines: int
    """How many lines it added, or took away where it added none."""


@dataclass(kw_only=True)
class EvidenceLine:
    """A criterion and what proves it. Several commands for one criterion are several lines."""

    criterion: str
    backing: str
    """`proven`, `green`, `red`, `open`, `read` (a reader says that it is met) or `claimed`."""
    by: str
    """The command; empty where nothing is bound to it."""
    commit: str | None
    """What the command ran on; null before that."""
    idle: bool = False
    """The command is green without the change, too."""
    own: bool = False
    """The change itself wrote the script or recipe that decides it."""


@dataclass(kw_only=True)
class HiddenCharacterLine:
    """A character that the change adds and a screen does not show; it may make code read as other code than it is."""

    path: str
    line: int
    """In the file as it is."""
    code: str
    """`U+202E`"""


@dataclass(kw_only=True)
class WeakeningLine:
    """One place of a change that makes tests look weaker. A hint for people, no proof."""

    sign: str
    """`fewer assertions`, `skip added`, `test file removed` or `failure silenced`."""
    path: str
    line: int | None
    """In the file as it is; null where what matters is gone."""
    words: str


@dataclass(kw_only=True)
class EnvironmentLine:
    """Where its agent works, or worked last."""

    run: int
    slot: int | None
    """Null once the run has ended."""
    ports: list[int]
    listening: list[int]
    temp: str | None
    temp_bytes: int
    worktree_bytes: int
    all_counted: bool
    limit_bytes: int
    up: CommandLine | None
    down: CommandLine | None
    notes: list[str]


@dataclass(kw_only=True)
class CommandLine:
    """A command of the project's environment that was run."""

    command: str
    ok: bool
    how: str
    tail: str


@dataclass(kw_only=True)
class FindingLine:
    id: int
    """Its number among the findings of this reader on this ticket."""
    weight: str
    """`blocking`, `concern` or `nit`, as it counts."""
    file: str
    """Empty: about the change as a whole."""
    line: int | None
    text: str


@dataclass(kw_only=True)
class CriterionLine:
    """What a reader says about one criterion, by its number from 1 on."""

    number: int
    met: bool
    why: str


@dataclass(kw_only=True)
class ReviewLine:
    """One reader's review of one change."""

    reader: str
    round: int
    """Counts this reader's looks at the ticket."""
    attempt: int
    commit: str
    """The change."""
    binding: bool
    """Whether the ticket waits, or waited, for it."""
    why: str
    """Why it is reviewed."""
    asked_at: float
    given_at: float | None
    verdict: str
    """`approve` or `changes`; `none` where no verdict came that could be used; empty before it is given."""
    complaint: str = ""
    """What was wrong with the last answer that could not be used."""
    summary: str = ""
    findings: list[FindingLine] = field(default_factory=list)
    criteria: list[CriterionLine] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What was made of the reader's words."""
    overruled: bool = False
    """It asked for changes, and the rules make an approval of that: nothing that counts blocks."""
