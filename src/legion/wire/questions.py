"""Questions to a person, and words to an agent, on the wire."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(kw_only=True)
class QuestionLine:
    """A question that waits for an answer."""

    id: int
    project: str
    ticket: int
    title: str
    words: str
    asked_at: float
    deadline: float
    """Unanswered until then, it counts as a no."""


@dataclass(kw_only=True)
class Inbox:
    schema: str = "legion.inbox/1"
    questions: list[QuestionLine]


@dataclass(kw_only=True)
class Answer:
    """A person's answer to a question."""

    allowed: bool
    why: str = ""


@dataclass(kw_only=True)
class Answered:
    schema: str = "legion.answered/1"
    question: int
    ticket: int
    allowed: bool
    message: str


@dataclass(kw_only=True)
class Words:
    """The body of tell and interrupt."""

    text: str = ""


@dataclass(kw_only=True)
class Told:
    schema: str = "legion.told/1"
    ticket: int
    run: int
    heard: bool | None
    """Null where it waits for its turn, or nothing was said."""
    message: str
