"""Conditions on results: a ticket that starts only if other tickets landed, failed, or reported a certain word. Pure.

    audit.failed      not audit.landed      audit.result == 'findings'      audit.result != 'clean'

Such a ticket is a draft on the board until the others have ended. Then it is queued, or stopped as not needed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from legion.domain.tickets.ticket import ENDED, State

_KEY = r"[a-z][a-z0-9_-]*"
_FORM = re.compile(rf"(not )?({_KEY}(?:,{_KEY})*)\.(landed|failed|result)(?: (==|!=) '([^']{{1,40}})')?")
_WORD = re.compile(r"^\W{0,3}RESULT:\s*(.{1,40}?)\W*$", re.IGNORECASE | re.MULTILINE)


class StepResult(Enum):
    LANDED = "landed"
    """All of them landed."""
    FAILED = "failed"
    """One of them failed."""
    WORD = "result"
    """They landed, and the last message of one agent reports the word."""


@dataclass(frozen=True, kw_only=True)
class ResultCondition:
    steps: tuple[str, ...]
    """Keys of the tickets that it is about; in a template, of the step."""
    result: StepResult
    word: str = ""
    negated: bool = False

    def __str__(self) -> str:
        steps = ",".join(self.steps)
        if self.result is StepResult.WORD:
            return f"{steps}.result {'!=' if self.negated else '=='} '{self.word}'"
        return f"{'not ' if self.negated else ''}{steps}.{self.result.value}"

    @property
    def excludes_landing(self) -> bool:
        """It holds only where one of them did not land."""
        return self.result is not StepResult.WORD and (self.result is StepResult.FAILED) is not self.negated


@dataclass(frozen=True, kw_only=True)
class SeenResult:
    """How one of the tickets stands."""

    state: State | None
    """None: it was dropped."""
    word: str = ""


def parse(text: str) -> ResultCondition | None:
    """None where the text has another form."""
    found = _FORM.fullmatch(text.strip())
    if found is None:
        return None
    result, compared = StepResult(found[3]), found[4]
    if (result is StepResult.WORD) != bool(compared) or (compared and found[1]):
        return None
    return ResultCondition(
        steps=tuple(dict.fromkeys(found[2].split(","))),
        result=result,
        word=(found[5] or "").strip(),
        negated=bool(found[1]) or compared == "!=",
    )


def reported(message: str) -> str:
    """The word in the last line `RESULT: word` of an agent's final message; empty if there is none."""
    found = _WORD.findall(message)
    return found[-1].strip() if found else ""


def holds(result: StepResult, word: str, negated: bool, seen: Sequence[SeenResult]) -> bool | None:
    """None: it is not decided yet. A ticket that was dropped or stopped has ended and did not land."""
    ended = all(one.state is None or one.state in ENDED for one in seen)
    landed = bool(seen) and all(one.state is State.DONE for one in seen)
    match result:
        case StepResult.FAILED if any(one.state is State.FAILED for one in seen):
            return not negated
        case StepResult.LANDED if any(one.state is None or one.state in ENDED - {State.DONE} for one in seen):
            return negated
    if not ended:
        return None
    match result:
        case StepResult.FAILED:
            return negated
        case StepResult.LANDED:
            return landed is not negated
        case StepResult.WORD:
            # Without the word of all of them, neither "is" nor "is not" is known.
            return landed and any(one.word.casefold() == word.casefold() for one in seen) is not negated
