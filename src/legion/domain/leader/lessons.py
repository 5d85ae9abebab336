"""Lessons: notes won from failures. A ticket whose attempt failed and whose later attempt passed proposes one.

The proposal is made by rule from what Legion knows itself: which attempt failed and why, and in which files the attempt
that passed differs. With `reviewer.lessons` a reader of the ticket's conversation words it instead. It counts once the
person or a leader has accepted it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from legion.domain.leader.digest import one_line
from legion.domain.notes import Note, is_for
from legion.domain.review.path_patterns import glob_fault, matches

_TITLE, _REASON = 60, 160
_MOST_FILES, _MOST_SCOPES, _MOST_ASKED = 4, 4, 20
_LESSON = 500
"""Characters of a reader's lesson."""
_COMMAND = re.compile(r"checks failed:\s+`([^`]+)`")
_USES = 10
"""Tickets with a lesson after which one that did not help retires."""
_OBJECT = re.compile(r"\{[^{}]*\}")


@dataclass(frozen=True, kw_only=True)
class FailedAttempt:
    attempt: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class ProposedLesson:
    text: str
    files: tuple[str, ...]
    """Patterns of the files that it is about."""


def proposal(
    title: str, failures: Sequence[FailedAttempt], differs: Collection[str], declared: Collection[str]
) -> ProposedLesson | None:
    """None where no attempt failed by its change, or where no file shows what made the difference.

    `differs`: the files in which the change that passed is not like the one that failed. `declared`: the ticket's own.
    """
    if not failures or not differs:
        return None
    last = failures[-1]
    shown = sorted(differs)
    more = f" and {len(shown) - _MOST_FILES} more" if len(shown) > _MOST_FILES else ""
    command = _COMMAND.search(last.reason)
    do = f"run `{command[1]}` before you say that you are done" if command else "see to what was found before"
    text = (
        f"Where you change {', '.join(shown[:_MOST_FILES])}{more}, {do}: "
        f'"{one_line(title, _TITLE)}" failed at attempt {last.attempt}, {one_line(last.reason, _REASON)}.'
    )
    return ProposedLesson(text=text, files=tuple(declared) or scopes(differs))


def question(title: str, failures: Sequence[FailedAttempt], differs: Collection[str]) -> str:
    """What a reader of the ticket's conversation is asked."""
    failed = "\n".join(f"- attempt {one.attempt}: {one_line(one.reason, _REASON)}" for one in failures)
    return f"""\
The work "{one_line(title, _TITLE)}" has landed after attempts that failed:
{failed}
The attempt that passed differs in: {", ".join(sorted(differs)[:_MOST_ASKED])}.

What should an agent that works on such files next know, so that its first attempt passes? Only what holds beyond this
ticket and what the code does not show at a glance; no praise, no report. Answer with one JSON object and nothing else:
{{"lesson": "one to three sentences, or empty if there is nothing to learn", "files": ["pattern of the files"]}}"""


def read_answer(answer: str, failures: Sequence[FailedAttempt], differs: Collection[str]) -> ProposedLesson | None:
    """The reader's lesson; None where it found none. Raises ValueError for an answer of another form.

    Patterns that cover none of the files in question are replaced: a lesson is carried where it was learned.
    """
    found = json.loads(_OBJECT.findall(answer)[-1]) if _OBJECT.search(answer) else None
    if not isinstance(found, dict) or not isinstance(found.get("lesson"), str):
        raise ValueError("the answer has no object with `lesson`")
    text = one_line(found["lesson"], _LESSON)
    if not text:
        return None
    given = found.get("files")
    patterns = [one for one in given if isinstance(one, str) and not glob_fault(one)] if isinstance(given, list) else []
    fitting = [one for one in patterns[:_MOST_SCOPES] if any(matches(file, (one,)) for file in differs)]
    return ProposedLesson(text=text, files=tuple(fitting) or scopes(differs))


def scopes(files: Iterable[str]) -> tuple[str, ...]:
    """The folders of the files as patterns; a file in the root is its own."""
    found = dict.fromkeys(_scope(file) for file in sorted(files))
    return tuple(found)[:_MOST_SCOPES]


def _scope(file: str) -> str:
    folder, _, _ = file.rpartition("/")
    return f"{folder}/**" if folder else file


@dataclass(frozen=True, kw_only=True)
class EndedTicket:
    """A ticket that landed or failed, with the attempts that it took."""

    id: int
    files: tuple[str, ...]
    labels: tuple[str, ...]
    attempts: int


@dataclass(frozen=True, kw_only=True)
class LessonEffect:
    """Attempts of tickets whose briefing carried a lesson, and of those that it fits and that did not have it."""

    carried: int = 0
    attempts: float | None = None
    """On average; None where there is no such ticket."""
    without: int = 0
    attempts_without: float | None = None


def effect(lesson: Note, carried: Collection[int], ended: Iterable[EndedTicket]) -> LessonEffect:
    """The ticket that taught it is left out."""
    fitting = [one for one in ended if one.id != lesson.ticket]
    having = [one.attempts for one in fitting if one.id in carried]
    lacking = [one.attempts for one in fitting if one.id not in carried and is_for(lesson, one.files, one.labels)]
    return LessonEffect(
        carried=len(having), attempts=_mean(having), without=len(lacking), attempts_without=_mean(lacking)
    )


def retires(seen: LessonEffect) -> str:
    """Why a lesson is closed: many tickets had it and took no fewer attempts than others. Empty: it stays."""
    if seen.carried < _USES or seen.attempts is None or seen.attempts < (seen.attempts_without or 1.01):
        return ""
    others = f"; {seen.attempts_without:.1f} without it" if seen.attempts_without else ""
    return f"did not help: {seen.attempts:.1f} attempts in {seen.carried} tickets with it{others}"


def _mean(counts: Sequence[int]) -> float | None:
    return sum(counts) / len(counts) if counts else None
