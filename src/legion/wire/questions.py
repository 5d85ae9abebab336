"""Shapes of questions to a person and of messages to a ticket's agent."""

from __future__ import annotations

from dataclasses import field

from legion.wire.lazy import dataclass


@dataclass(kw_only=True)
class QuestionLine:
    """A question that waits for an answer."""

    id: int
    project: str
    ticket: int | None
    title: str
    words: str
    asked_at: float
    deadline: float
    """Unanswered until then, it is settled with `default`."""
    kind: str = "permission"
    """permission, plan, budget, conflict, change, attempts, review, ask or goal."""
    agent: str = ""
    """The standing agent that asks."""
    name: str = ""
    """Its name."""
    facts: dict[str, str] = field(default_factory=dict)
    """What a person needs to know to answer, by name."""
    choices: list[str] = field(default_factory=list)
    """What it can be answered with; empty: any words."""
    default: str = ""


@dataclass(kw_only=True)
class Inbox:
    schema: str = "legion.inbox/1"
    questions: list[QuestionLine]


@dataclass(kw_only=True)
class AnswerQuestion:
    """A person's answer to a question."""

    choice: str = ""
    """One of the question's choices, or words where it has none."""
    allowed: bool | None = None
    """Of a permission only, instead of the choice: yes or no."""
    why: str = ""
    """Words that go with the choice."""


@dataclass(kw_only=True)
class Answered:
    schema: str = "legion.answered/1"
    question: int
    ticket: int | None
    allowed: bool | None
    """Of a permission; null for other questions."""
    message: str
    choice: str = ""


@dataclass(kw_only=True)
class MessageText:
    """The body of tell and interrupt."""

    text: str = ""


@dataclass(kw_only=True)
class Delivered:
    schema: str = "legion.told/1"
    ticket: int
    run: int
    heard: bool | None
    """Null where it waits for its turn, or nothing was said."""
    message: str
