"""Reads the final message of a planner, or of the last reader of an epic. Only the last valid object counts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from legion.domain.plans import draft
from legion.domain.plans.draft import MalformedDraft, PlanDraft, shown
from legion.domain.text import count

MOST_QUESTIONS = 5
MOST_PROPOSALS = 6
LONGEST_QUESTION = 600
LONGEST_PROPOSAL = 120
OTHER = "other"
"""The choice that stands for the person's own text."""
_FENCE = re.compile(r"^([ \t]*)```[A-Za-z]*[ \t]*$", re.MULTILINE)
_BEGINS = re.compile(r"^[ \t]*\{", re.MULTILINE)
_MOST_TRIES = 200


@dataclass(frozen=True, kw_only=True)
class PlanQuestion:
    """A question before the plan, with proposals; the first is taken without an answer."""

    text: str
    proposals: tuple[str, ...]


def parse(text: str, *, may_ask: bool) -> PlanDraft | tuple[PlanQuestion, ...]:
    """Raises MalformedDraft with the fault of the last object, where none is valid."""
    fault = MalformedDraft('the answer holds no JSON object with the key "tickets"')
    for found in reversed(list(_objects(text))):
        try:
            if "questions" in found and "tickets" not in found:
                return _questions(found, may_ask)
            return draft.read(found)
        except MalformedDraft as wrong:
            fault = wrong if str(fault).startswith("the answer") else fault
    raise fault


def _objects(text: str) -> Iterator[Mapping[str, Any]]:
    """Every object with tickets or questions that starts a line, fenced or bare, and not inside another."""
    decoder = json.JSONDecoder()
    body = _FENCE.sub(r"\1", text)
    at = 0
    for _ in range(_MOST_TRIES):
        begin = _BEGINS.search(body, at)
        if begin is None:
            return
        at = begin.end()
        try:
            found, at = decoder.raw_decode(body, begin.end() - 1)
        except (json.JSONDecodeError, RecursionError):
            continue
        if isinstance(found, dict) and {"tickets", "questions", "points"} & found.keys():
            yield found


def _questions(given: Mapping[str, Any], may_ask: bool) -> tuple[PlanQuestion, ...]:
    if not may_ask:
        raise MalformedDraft("no more questions can be asked: answer with the plan")
    asked = given["questions"]
    if not isinstance(asked, list) or not 1 <= len(asked) <= MOST_QUESTIONS:
        raise MalformedDraft(f"`questions` must be a list of 1 to {MOST_QUESTIONS} questions")
    return tuple(_question(one) for one in asked)


def _question(given: object) -> PlanQuestion:
    if not isinstance(given, Mapping):
        raise MalformedDraft(f"a question must be a table with `text` and `proposals`, and is {shown(given)}")
    text, proposals = given.get("text"), given.get("proposals")
    if not isinstance(text, str) or not text.strip() or len(text) > LONGEST_QUESTION:
        raise MalformedDraft(f"the `text` of a question must have 1 to {LONGEST_QUESTION} characters")
    if not isinstance(proposals, list) or not 2 <= len(proposals) <= MOST_PROPOSALS:
        raise MalformedDraft(f"a question must have 2 to {MOST_PROPOSALS} `proposals`")
    made = [" ".join(one.split()) if isinstance(one, str) else "" for one in proposals]
    if any(not one or len(one) > LONGEST_PROPOSAL or one.lower() == OTHER for one in made):
        raise MalformedDraft(f"each proposal must be a text of at most {LONGEST_PROPOSAL} characters")
    if len({one.lower() for one in made}) < len(made):
        raise MalformedDraft("the proposals of a question must differ")
    return PlanQuestion(text=text.strip(), proposals=tuple(made))


# What the last reader of an epic found: the goal, point by point, held against what landed.

MOST_POINTS = 60
LONGEST_POINT = 2000


class PointState(Enum):
    DONE = "done"
    MISSING = "missing"
    DIFFERENT = "different"
    """It is reached, otherwise than was asked for."""


@dataclass(frozen=True, kw_only=True)
class GoalPoint:
    """One thing that the goal or the specification asks for."""

    text: str
    state: PointState
    evidence: str = ""
    """Where it can be seen, by the reader's words."""
    command: str = ""
    """It passes on the target if the point is done; Legion runs it."""


Reading = tuple[tuple[GoalPoint, ...], PlanDraft | None]
"""The points, and the plan for what is missing."""


def parse_points(text: str) -> Reading:
    """Raises MalformedDraft with the first fault of the last object."""
    found = [one for one in _objects(text) if "points" in one]
    if not found:
        raise MalformedDraft('the answer holds no JSON object with the key "points"')
    given = dict(found[-1])
    points = given.pop("points")
    if not isinstance(points, list) or not 1 <= len(points) <= MOST_POINTS:
        raise MalformedDraft(f"`points` must be a list of 1 to {MOST_POINTS} points")
    made = tuple(_point(one, n) for n, one in enumerate(points, 1))
    proposed = draft.read(given) if given.get("tickets") else None
    if proposed is None and any(one.state is PointState.MISSING for one in made):
        raise MalformedDraft("a point is missing, and no ticket in `tickets` brings it")
    if proposed is not None and all(one.state is PointState.DONE for one in made):
        raise MalformedDraft("every point is done, so `tickets` must be empty")
    return made, proposed


def _point(given: object, n: int) -> GoalPoint:
    if not isinstance(given, Mapping):
        raise MalformedDraft(f"point {n} must be a table with `text` and `state`, and is {shown(given)}")
    texts = {name: given.get(name, "") for name in ("text", "state", "evidence", "command")}
    if wrong := [name for name, one in texts.items() if not isinstance(one, str) or len(one) > LONGEST_POINT]:
        raise MalformedDraft(f"point {n}: `{wrong[0]}` must be a text of at most {LONGEST_POINT} characters")
    clean = {name: " ".join(one.replace("\0", "").split()) for name, one in texts.items()}
    if clean["state"] not in [one.value for one in PointState] or not clean["text"]:
        raise MalformedDraft(f"point {n} needs a `text`, and a `state` that is done, missing or different")
    if not clean["evidence"] and not clean["command"]:
        raise MalformedDraft(f"point {n}: give a `command` that shows it, or say in `evidence` where it can be seen")
    state = PointState(clean.pop("state"))
    return GoalPoint(state=state, **clean)


def said_of(points: Sequence[GoalPoint]) -> str:
    """In short: 3 of 4 points done, 1 missing."""
    many = {state: sum(one.state is state for one in points) for state in PointState}
    rest = [f"{number} {state.value}" for state, number in many.items() if number and state is not PointState.DONE]
    return ", ".join([f"{many[PointState.DONE]} of {count(len(points), 'point')} done", *rest]) if points else ""
