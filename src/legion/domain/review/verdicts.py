"""Verdicts: how a reviewer's last message is parsed, validated, and weighed against its earlier findings.

An answer is checked against a schema: one that does not fit, contradicts itself or shows that the change was not read
is `MalformedVerdict`, with the reason that the reviewer gets. A valid one is weighed against the same reviewer's
earlier findings: a settled finding is not raised again where nothing has changed since, and lines that it accepted do
not block later.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from legion.domain.text import count, storable, to_json

LONGEST = 200_000
"""Characters of an answer that are parsed."""
MOST_FINDINGS = 50
OVERRULED = "it asked for changes, and nothing that counts blocks"
"""The note of a verdict that is an approval by the rules, not in the reviewer's own text."""
_LONGEST_TEXT = 2000
_NAMED = 5
"""Paths that a reason names."""
_NEAR_LINES = 3
"""A finding this near to a changed line is about it."""
_ALIKE = 0.6
"""The share of words that two findings must have in common to be the same finding."""
_FENCE = re.compile(r"^```[a-z]*[ \t]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_BEGINS = re.compile(r"^[ \t]*\{", re.MULTILINE)
_MOST_TRIES = 500
_WORD = re.compile(r"[^\W_]+")


class Ruling(Enum):
    APPROVE = "approve"
    """Nothing blocks."""
    CHANGES = "changes"
    """A change is needed before it may land."""


class Severity(Enum):
    BLOCKING = "blocking"
    """It must not land like this."""
    CONCERN = "concern"
    """Worth knowing; no action needed."""
    NIT = "nit"


@dataclass(frozen=True, kw_only=True)
class Finding:
    weight: Severity
    file: str
    """Empty: about the change as a whole, which never blocks."""
    line: int | None
    text: str
    id: int = 0
    """Its number among this reviewer's findings on this ticket; 0 until it is weighed."""
    settled: bool = False

    @property
    def place(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"


@dataclass(frozen=True, kw_only=True)
class CriterionVerdict:
    """A reviewer's judgement of one criterion, by its number from 1 on."""

    number: int
    met: bool
    why: str


@dataclass(frozen=True, kw_only=True)
class Verdict:
    ruling: Ruling
    summary: str
    read: tuple[str, ...]
    findings: tuple[Finding, ...] = ()
    settled: tuple[int, ...] = ()
    criteria: tuple[CriterionVerdict, ...] = ()
    ranking: tuple[str, ...] = ()
    """The commits of all attempts of a race that the reviewer compared, best first; empty: it compared none."""

    @property
    def blocking(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.weight is Severity.BLOCKING)


@dataclass(frozen=True, kw_only=True)
class ReviewRequest:
    """One reviewer's review of one change, from the request on."""

    id: int
    project: int
    ticket: int
    attempt: int
    reviewer: str
    """The key of its stage."""
    round: int
    """Counts this reviewer's reviews of the ticket, from 1 on."""
    base: str
    commit: str
    """The change."""
    binding: bool
    """Does the ticket wait for it?"""
    why: str = ""
    """Why the change is reviewed, for people."""
    refused: int = 0
    """Answers that could not be used."""
    complaint: str = ""
    """What was wrong with the last of them."""
    asked_at: float = 0.0
    given_at: float | None = None
    verdict: Verdict | None = None
    """The verdict after it was weighed. None before it is given, and where no usable one came."""
    notes: tuple[str, ...] = ()
    """How the reviewer's answer was interpreted, for people."""

    @property
    def sends_back(self) -> bool:
        return self.verdict is not None and self.verdict.ruling is Ruling.CHANGES


class MalformedVerdict(Exception):
    """An answer that cannot be used. The message continues after "because" and is sent to the reviewer."""


@dataclass(frozen=True, kw_only=True)
class ReviewSubject:
    """What is known of the reviewed change."""

    changed: tuple[str, ...]
    """Every path that it touches."""
    exists: Callable[[str], bool]
    """Is a path a file of the change or of its base?"""
    criteria: int = 0
    """How many the ticket has."""
    checklist: tuple[str, ...] = ()
    """Points of the project that an approval must judge, numbered after the criteria."""
    root: str = ""
    """The folder in which the reviewer saw the files, since it may use absolute paths."""
    unseen: tuple[str, ...] = ()
    """Touched paths that the reviewer was not shown completely and never opened."""
    attempts: Mapping[str, str] = field(default_factory=dict)
    """The commits of the attempts that the reviewer compared, by the letters under which it saw them."""


def parse(text: str, subject: ReviewSubject) -> Verdict:
    """The verdict in a reviewer's last message. Raises MalformedVerdict with the first fault."""
    if len(text) > LONGEST:
        raise MalformedVerdict(f"it has more than {LONGEST:,} characters")
    given = _the_one(text)
    verdict = Verdict(
        ruling=_ruling(given),
        summary=_text(given, "summary"),
        read=tuple(_plain(path, subject.root) for path in _strings(given, "read")),
        findings=tuple(_finding(one, subject.root) for one in _objects(given, "findings")),
        settled=tuple(_whole(number, "a number in settled") for number in _list(given, "settled")),
        criteria=tuple(_judged(one) for one in _objects(given, "criteria")),
        ranking=_ranking(given, subject.attempts),
    )
    _refuse_contradictions(verdict)
    _refuse_unread(verdict, subject)
    _refuse_unknown(verdict, subject)
    _refuse_unjudged(verdict, subject)
    return verdict


@dataclass(frozen=True, kw_only=True)
class ReviewedSince:
    """What has changed since the same reviewer's last review: lines of files as they are now."""

    lines: Mapping[str, Sequence[tuple[int, int]]]
    """By path, the first and last line of every new place. A path without places is gone or has no lines."""

    def touches(self, finding: Finding) -> bool:
        if finding.file not in self.lines:
            return False
        if finding.line is None or not self.lines[finding.file]:
            return True
        near = finding.line
        return any(first - _NEAR_LINES <= near <= last + _NEAR_LINES for first, last in self.lines[finding.file])


@dataclass(frozen=True, kw_only=True)
class WeighedVerdict:
    verdict: Verdict
    notes: tuple[str, ...] = ()
    """How it was interpreted, for people."""


def weigh(verdict: Verdict, earlier: Sequence[Finding], since: ReviewedSince | None) -> WeighedVerdict:
    """The part of a verdict that counts, given this reviewer's earlier findings. `since` is None at its first review.

    Raises MalformedVerdict where it both settles and raises the same finding: the intention cannot be known.
    """
    notes: list[str] = []
    kept: list[Finding] = []
    number = max((finding.id for finding in earlier), default=0)
    for finding in verdict.findings:
        known = next((one for one in reversed(earlier) if _same(one, finding)), None)
        stale = since is not None and not since.touches(finding)
        if known is not None and known.id in verdict.settled and finding.weight is Severity.BLOCKING:
            raise MalformedVerdict(f"it settles finding {known.id} and raises it again ({finding.place})")
        if known is not None and (known.id in verdict.settled or (known.settled and stale)):
            notes.append(f"finding {known.id} was settled and does not count again: {finding.place}")
            continue
        let_pass = known is None or known.weight is not Severity.BLOCKING
        if let_pass and stale and finding.weight is Severity.BLOCKING:
            notes.append(f"{finding.place} has not changed since it was accepted, so it does not block now")
            finding = replace(finding, weight=Severity.CONCERN)
        if known is None:
            number += 1
        kept.append(replace(finding, id=number if known is None else known.id))
    counted = replace(verdict, findings=tuple(kept))
    if counted.ruling is Ruling.CHANGES and not counted.blocking:
        notes.append(OVERRULED)
        counted = replace(counted, ruling=Ruling.APPROVE)
    return WeighedVerdict(verdict=counted, notes=tuple(notes))


def findings_of(readings: Sequence[ReviewRequest]) -> tuple[Finding, ...]:
    """All findings of one reviewer, oldest first, each after its last review: one that the last verdict does not repeat
    is settled.
    """
    known: dict[int, Finding] = {}
    for reading in readings:
        if reading.verdict is None:
            continue
        for id, finding in known.items():
            known[id] = replace(finding, settled=True)
        for finding in reading.verdict.findings:
            known[finding.id] = finding
    return tuple(known.values())


def _same(one: Finding, other: Finding) -> bool:
    """The same file and nearly the same text: a line moves when others are added above it."""
    if one.file != other.file:
        return False
    mine, theirs = (set(_WORD.findall(finding.text.casefold())) for finding in (one, other))
    return len(mine & theirs) >= _ALIKE * len(mine | theirs)


def _the_one(text: str) -> Mapping[str, Any]:
    """The one object in the text that is meant as a verdict."""
    found = list(_candidates(text))
    if len(found) > 1:
        raise MalformedVerdict("it holds more than one verdict, and only one can count")
    if not found:
        raise MalformedVerdict('it holds no JSON object with the key "verdict"')
    return found[0]


def _candidates(text: str) -> Iterator[Mapping[str, Any]]:
    """Every object with a verdict that starts a line, fenced or bare, and not inside another."""
    decoder = json.JSONDecoder(object_pairs_hook=_without_repeats)
    body = _FENCE.sub(lambda fence: f"{fence[1]}\n", text)
    at = tries = 0
    while (begin := _BEGINS.search(body, at)) is not None:
        start, at, tries = begin.end() - 1, begin.end(), tries + 1
        if tries > _MOST_TRIES:
            raise MalformedVerdict("it holds too much that looks like JSON and is none")
        try:
            found, end = decoder.raw_decode(body, start)
        except (json.JSONDecodeError, RecursionError):
            continue
        at = end
        if isinstance(found, dict) and "verdict" in found:
            yield found


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(name for name, _ in pairs if [other for other, _ in pairs].count(name) > 1)
        raise MalformedVerdict(f"the key {to_json(twice)} stands twice in one object")
    return found


def _ruling(given: Mapping[str, Any]) -> Ruling:
    said = given["verdict"]
    if said not in [one.value for one in Ruling]:
        raise MalformedVerdict(f'"verdict" is {_shown(said)}, and only "approve" or "changes" can be')
    return Ruling(said)


def _text(given: Mapping[str, Any], name: str) -> str:
    said = given.get(name)
    if not isinstance(said, str) or not said.strip():
        raise MalformedVerdict(f'"{name}" must be words, and is {_shown(said)}')
    return _cut(said)


def _list(given: Mapping[str, Any], name: str) -> list[Any]:
    said = given.get(name, [])
    if not isinstance(said, list):
        raise MalformedVerdict(f'"{name}" must be a list, and is {_shown(said)}')
    return said


def _strings(given: Mapping[str, Any], name: str) -> list[str]:
    said = _list(given, name)
    if wrong := [one for one in said if not isinstance(one, str)]:
        raise MalformedVerdict(f'"{name}" must hold paths only, and holds {_shown(wrong[0])}')
    return said


def _objects(given: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    said = _list(given, name)
    if wrong := [one for one in said if not isinstance(one, dict)]:
        raise MalformedVerdict(f'"{name}" must hold objects only, and holds {_shown(wrong[0])}')
    if len(said) > MOST_FINDINGS:
        raise MalformedVerdict(
            f'"{name}" has {count(len(said), "entry", "entries")}: keep the {MOST_FINDINGS} that matter most'
        )
    return said


def _whole(said: object, what: str) -> int:
    if isinstance(said, bool) or not isinstance(said, int):
        raise MalformedVerdict(f"{what} is {_shown(said)}, and must be a whole number")
    return said


def _finding(given: Mapping[str, Any], root: str) -> Finding:
    weight = given.get("weight")
    if weight not in [one.value for one in Severity]:
        known = ", ".join(f'"{one.value}"' for one in Severity)
        raise MalformedVerdict(f'the "weight" of a finding is {_shown(weight)}, and must be one of {known}')
    file, line = given.get("file", ""), given.get("line")
    if not isinstance(file, str):
        raise MalformedVerdict(f'the "file" of a finding is {_shown(file)}, and must be a path')
    if line is not None and _whole(line, 'the "line" of a finding') < 1:
        raise MalformedVerdict(f'the "line" of a finding is {line}, and lines count from 1 on')
    return Finding(weight=Severity(weight), file=_plain(file, root), line=line, text=_text(given, "text"))


def _judged(given: Mapping[str, Any]) -> CriterionVerdict:
    met, why = given.get("met"), given.get("why", "")
    if not isinstance(met, bool):
        raise MalformedVerdict(f'"met" of a criterion is {_shown(met)}, and must be true or false')
    if not isinstance(why, str):
        raise MalformedVerdict(f'"why" of a criterion is {_shown(why)}, and must be words')
    return CriterionVerdict(number=_whole(given.get("number"), "the number of a criterion"), met=met, why=_cut(why))


def _ranking(given: Mapping[str, Any], attempts: Mapping[str, str]) -> tuple[str, ...]:
    if not attempts:
        return ()
    said = _list(given, "ranking")
    if sorted(map(str, said)) != sorted(attempts):
        named = ", ".join(attempts)
        raise MalformedVerdict(f'"ranking" must hold each attempt once ({named}), best first, and is {_shown(said)}')
    return tuple(attempts[str(letter)] for letter in said)


def _refuse_contradictions(verdict: Verdict) -> None:
    blocking = verdict.blocking
    if verdict.ruling is Ruling.APPROVE and blocking:
        raise MalformedVerdict(f"it approves with a blocking finding ({blocking[0].place})")
    if verdict.ruling is Ruling.CHANGES and not blocking:
        raise MalformedVerdict("it asks for changes without a blocking finding that says which")
    unmet = [one.number for one in verdict.criteria if not one.met]
    if verdict.ruling is Ruling.APPROVE and unmet:
        raise MalformedVerdict(f"it approves although it says that criterion {unmet[0]} is not met")
    if nowhere := [one for one in blocking if not one.file]:
        raise MalformedVerdict(f"a blocking finding names no file: {nowhere[0].text[:80]!r}")


def _refuse_unread(verdict: Verdict, subject: ReviewSubject) -> None:
    """The paths that it claims to have read must cover the change, and be real; a folder covers what is below it."""
    read = set(verdict.read)
    missed = [path for path in subject.changed if path not in read and not _below(path, read)]
    if missed:
        raise MalformedVerdict(f'"read" does not name what the change touches: {_some(missed)}')
    if subject.unseen:
        raise MalformedVerdict(f"it never opened what its prompt shows only a part of: {_some(subject.unseen)}")


def _some(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return ", ".join(map(_shown, paths[:_NAMED])) + more


def _refuse_unknown(verdict: Verdict, subject: ReviewSubject) -> None:
    for finding in verdict.findings:
        if finding.file and not subject.exists(finding.file):
            raise MalformedVerdict(f"a finding is about {_shown(finding.file)}, and there is no such file")
    numbers = [one.number for one in verdict.criteria]
    for number in numbers:
        most = subject.criteria + len(subject.checklist)
        if not 1 <= number <= most:
            there = f"there are {most}" if most else "the ticket has none"
            raise MalformedVerdict(f"it judges criterion {number}, and {there}")
        if numbers.count(number) > 1:
            raise MalformedVerdict(f"it judges criterion {number} twice")


def _refuse_unjudged(verdict: Verdict, subject: ReviewSubject) -> None:
    judged = {one.number for one in verdict.criteria}
    for number, point in enumerate(subject.checklist, subject.criteria + 1):
        if verdict.ruling is Ruling.APPROVE and number not in judged:
            raise MalformedVerdict(f'it approves, and "criteria" does not judge point {number} ({_shown(point)})')


def _below(path: str, folders: Collection[str]) -> bool:
    parts = path.split("/")
    return any("/".join(parts[:depth]) in folders for depth in range(1, len(parts)))


def _plain(path: str, root: str) -> str:
    """As git writes it: relative to the root of the repository."""
    named = storable(path).strip()
    if root and named.startswith(f"{root}/"):
        named = named[len(root) + 1 :]
    return named.removeprefix("./").rstrip("/")


def _shown(value: object) -> str:
    words = to_json(value, ensure_ascii=False, default=str)
    return storable(words if len(words) <= 100 else f"{words[:100]}...")


def _cut(words: str) -> str:
    plain = storable(words).strip()
    return plain if len(plain) <= _LONGEST_TEXT else f"{plain[:_LONGEST_TEXT]}..."
