"""A question: something only a person can settle. Unanswered, it settles itself at its deadline, as a no."""

from __future__ import annotations

from dataclasses import dataclass

OF_THE_ENGINE = 0
"""The `run` of a question that no agent asks: its ticket is parked until it is settled."""


@dataclass(frozen=True, kw_only=True)
class Question:
    id: int
    key: str
    """Who asked gave it this name; the same name is the same question."""
    project: int
    ticket: int
    run: int
    words: str
    asked_at: float
    deadline: float
    settled_at: float | None = None
    allowed: bool | None = None
    why: str = ""
