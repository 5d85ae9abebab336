"""A question: something only a person can settle. Without an answer its deadline settles it with the fallback.

All that waits for a person is one list: first what is settled without them soon, then what holds up most tickets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from legion.domain.errors import BadInput


class QuestionKind(Enum):
    """What a question is about. The kind decides what an answer does."""

    PERMISSION = "permission"
    """An agent wants to use a tool that it is not allowed to use by itself."""
    PLAN = "plan"
    """An agent may only read until its plan is approved."""
    BUDGET = "budget"
    """What was given is spent, and the work is not done."""
    CONFLICT = "conflict"
    """Agents could not agree, or their changes could not."""
    CHANGE = "change"
    """A change touches protected files or weakens tests. Its ticket is parked until a person answers."""
    ATTEMPTS = "attempts"
    """A ticket's attempts and its ladder are used up. It is parked until a person answers."""
    REVIEW = "review"
    """A change is not approved and its review rounds are over, or its reviewer gives no verdict. Its ticket is parked
    until a person answers.
    """
    GATE = "gate"
    """A change passed everything and waits for the person, who wants to land it themselves. Its ticket is parked."""
    IDLE = "idle"
    """A standing agent holds a ticket and does nothing about it."""
    ASK = "ask"
    """An agent's own question."""
    BRANCH = "branch"
    """The branch of a session was deleted, renamed or rewritten."""
    CHECKS = "checks"
    """The checks of a project were not shown to go red when the code is broken. Its tickets wait before they land."""
    NETWORK = "network"
    """An agent wanted to reach a host that its network does not lead to."""
    GOAL = "goal"
    """A planner asks before it plans, with proposals to choose from."""


class SettledBy(Enum):
    """What settled a question."""

    PERSON = "person"
    SILENCE = "silence"
    """Its deadline passed."""
    END = "end"
    """The run or agent that asked is gone."""
    RULE = "rule"
    """A rule that the person wrote answers it."""


YES = "yes"
NO = "no"
ALWAYS = "always"
"""Yes, and a rule in the person's settings from now on."""
ONCE = "once"
"""This run of the agent alone."""
PROJECT = "project"
"""All agents of the project, from now on."""
NEVER = "never"
"""Nor is it asked again in this project."""
MOST_OPEN = 10
"""Questions of one agent that may wait for the person at once."""
APPROVE = "approve"
REJECT = "reject"
MORE = "more"
"""The same amount again."""
LEAVE = "leave"
FIX = "fix"
"""legion.toml is changed as the question shows."""
TRUST = "trust"
"""Changes land on these checks all the same."""
RETRY = "retry"
LAND = "land"
"""As it is."""
BACK = "back"
"""Back to its agent, with the person's message."""
STOP = "stop"
RECREATE = "recreate"
"""Make the branch again."""
BIND = "bind"
"""Another branch, which the answer's text names."""
REBUILD = "rebuild"
"""The branch as it is becomes the target."""
REBASE = "rebase"
"""The branch as it is becomes the target, and landed work lands on it again."""
RELEASE = "release"
"""Back on the board, for any agent."""

CHOICES: Mapping[QuestionKind, tuple[str, ...]] = {
    QuestionKind.PERMISSION: (YES, NO),
    QuestionKind.PLAN: (APPROVE, REJECT),
    QuestionKind.BUDGET: (MORE, LEAVE),
    QuestionKind.CONFLICT: (RETRY, LEAVE),
    QuestionKind.CHANGE: (YES, NO),
    QuestionKind.ATTEMPTS: (YES, NO),
    QuestionKind.REVIEW: (LAND, BACK, STOP),
    QuestionKind.GATE: (LAND, BACK, STOP),
    QuestionKind.IDLE: (RELEASE, LEAVE),
    QuestionKind.ASK: (),
    QuestionKind.BRANCH: (RECREATE, BIND, REBASE, REBUILD, LEAVE),
    QuestionKind.CHECKS: (TRUST, LEAVE),
    QuestionKind.NETWORK: (ONCE, PROJECT, NEVER),
    QuestionKind.GOAL: (),
}
"""The default choices of each kind. An empty list: the answer is free text."""

FALLBACKS: Mapping[QuestionKind, str] = {
    QuestionKind.PERMISSION: NO,
    QuestionKind.PLAN: LEAVE,
    QuestionKind.BUDGET: LEAVE,
    QuestionKind.CONFLICT: LEAVE,
    QuestionKind.CHANGE: NO,
    QuestionKind.ATTEMPTS: NO,
    QuestionKind.REVIEW: STOP,
    QuestionKind.GATE: LEAVE,
    QuestionKind.IDLE: RELEASE,
    QuestionKind.ASK: "",
    QuestionKind.BRANCH: LEAVE,
    QuestionKind.CHECKS: LEAVE,
    QuestionKind.NETWORK: NEVER,
    QuestionKind.GOAL: "",
}
"""The answer of a deadline: always that nothing more happens than without an answer; an idle claim just ends."""

TOO_LATE = "no answer in time"
"""The reason recorded when a deadline settles a question."""


@dataclass(frozen=True, kw_only=True)
class Question:
    id: int
    key: str
    """The asker's own name for the question; the same name is the same question."""
    kind: QuestionKind
    project: int
    agent: str = ""
    """The standing agent that asks."""
    ticket: int | None = None
    run: int | None = None
    words: str
    facts: Mapping[str, str] = field(default_factory=dict)
    """What a person needs to know to answer."""
    choices: tuple[str, ...]
    """Empty: any text is an answer."""
    fallback: str
    """Its answer when the deadline passes."""
    asked_at: float
    deadline: float
    settled_at: float | None = None
    settled_by: SettledBy | None = None
    choice: str = ""
    why: str = ""

    @property
    def allowed(self) -> bool:
        """Of a permission or a change: whether it was granted."""
        return self.choice in (YES, ALWAYS)


def chosen(question: Question, said: str) -> str:
    """The choice that a person means. Raises BadInput that lists the choices."""
    word = said.strip()
    if not question.choices:
        if not word:
            raise BadInput(f"Question {question.id} wants words for an answer: `legion answer {question.id} 'words'`.")
        return word
    if question.kind is QuestionKind.NETWORK:
        word = {YES: PROJECT, NO: NEVER}.get(word.lower(), word)
    for choice in question.choices:
        if choice.lower() == word.lower():
            return choice
    listed = ", ".join(question.choices)
    raise BadInput(f"Question {question.id} cannot be answered with {word[:40]!r}: choose one of {listed}.")


HURRY = 600.0
"""Seconds before a deadline in which a question comes first, whatever it holds up."""


class WaitingKind(Enum):
    QUESTION = "question"
    PLAN = "plan"
    FAILED = "failed"
    """A ticket that failed and does not ask."""
    COLLECT = "collect"
    """Landed commits that the person's branch lacks."""


@dataclass(frozen=True, kw_only=True)
class Waiting:
    kind: WaitingKind
    id: int
    """Of the question, the plan, the ticket or the project."""
    project: int
    ticket: int | None = None
    is_for_all: bool = False
    """All tickets of the project wait for it; of all projects, where it names none."""
    brings: int = 0
    """Tickets that a yes dispatches."""
    since: float
    deadline: float | None = None


@dataclass(frozen=True, kw_only=True)
class OpenTickets:
    """Those that have not ended: their projects, and what each comes after."""

    projects: Mapping[int, int]
    after: Mapping[int, Sequence[int]]

    @cached_property
    def _followers(self) -> Mapping[int, set[int]]:
        found: dict[int, set[int]] = {}
        for one, before in self.after.items():
            for other in before:
                found.setdefault(other, set()).add(one)
        return found

    def held_up_by(self, ticket: int) -> int:
        """How many come after a ticket, directly or over others."""
        found: set[int] = set()
        todo = [ticket]
        while todo:
            new = self._followers.get(todo.pop(), set()) - found
            found |= new
            todo += new
        return len(found)


def holds_up(one: Waiting, live: OpenTickets) -> int:
    """How many tickets cannot go on before it is decided."""
    if one.is_for_all:
        return sum(not one.project or project == one.project for project in live.projects.values())
    if one.ticket is not None:
        return 1 + live.held_up_by(one.ticket)
    return one.brings


def in_order(found: Iterable[Waiting], live: OpenTickets, now: float) -> list[tuple[Waiting, int]]:
    """Each with the number of tickets that it holds up."""

    def place(pair: tuple[Waiting, int]) -> tuple[bool, int, float, float, str, int]:
        one, many = pair
        until = float("inf") if one.deadline is None else one.deadline
        return until - now > HURRY, -many, until, one.since, one.kind.value, one.id

    return sorted(((one, holds_up(one, live)) for one in found), key=place)
