"""Shapes of reviews: verdict, findings, criteria."""

from __future__ import annotations

from dataclasses import field

from legion.wire.lazy import dataclass


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
