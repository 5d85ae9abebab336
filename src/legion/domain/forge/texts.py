"""Texts that Legion writes on a forge: the body of a pull request, and the one comment on an issue."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from legion.domain.forge.issues import CommentAnswer, asked_in, inert, marker
from legion.domain.questions import Question, QuestionKind

_MOST = 60_000
_MOST_ASKED = 6_000


@dataclass(frozen=True, kw_only=True)
class ProvenCheck:
    name: str
    command: str
    seconds: float


@dataclass(frozen=True, kw_only=True)
class PullFacts:
    """What a pull request says about its change."""

    ticket: int
    title: str
    asked: str
    issues: Sequence[int] = ()
    """The issues that asked for it, which the merge closes."""
    done: str = ""
    """The agent's own report. Only a claim."""
    checks: Sequence[ProvenCheck] = ()
    proven: Sequence[str] = ()
    """Criteria that a command proves."""
    unproven: Sequence[str] = ()
    findings: Sequence[str] = ()
    files: Sequence[str] = ()
    attempts: int = 1
    usd: float | None = None
    parts: Sequence[str] = ()
    """The tickets of an epic that is one pull request."""
    read: Sequence[str] = ()
    """What the last reader of that epic found, point by point."""


def pull_key(ticket: int) -> str:
    return f"pull ticket={ticket}"


def pull_title(facts: PullFacts) -> str:
    return inert(facts.title)[:200]


def pull_body(facts: PullFacts) -> str:
    closes = "".join(f"Closes #{number}\n" for number in facts.issues)
    unchecked = [] if facts.checks else ["**Unproven: this project has no checks, so nothing was run on this change.**"]
    cost = "not counted" if facts.usd is None else f"${facts.usd:.2f}"
    parts = [
        closes,
        _section("Asked", fenced([_cut(asked_in(facts.asked), _MOST_ASKED)])),
        _section("Tickets of this epic", fenced(facts.parts)),
        _section("What a last reader found of the goal, point by point", fenced(facts.read)),
        _section("Done, as its agent reports it (a claim)", fenced([_cut(facts.done, _MOST_ASKED)])),
        _section("Checked on exactly this commit", [*unchecked, *_checks(facts.checks)]),
        _section("Proven criteria", fenced(facts.proven)),
        _section("Unproven", fenced(facts.unproven)),
        _section("Findings of reviewers", fenced(facts.findings)),
        _section("Files", fenced([" ".join(path.split()) for path in facts.files[:50]])),
        f"Ticket {facts.ticket}, attempt {facts.attempts}, cost {cost}.",
        "Comments of people who may write to this repository go back to the agent.",
        marker(pull_key(facts.ticket)),
    ]
    return _cut("\n\n".join(part for part in parts if part), _MOST)


def _checks(checks: Sequence[ProvenCheck]) -> list[str]:
    if not checks:
        return []
    rows = [f"| {one.name} | `{one.command.replace('|', chr(92) + '|')}` | {one.seconds:.1f} s |" for one in checks]
    return ["\n".join(["| check | command | took |", "|---|---|---|", *rows])]


def fenced(texts: Sequence[str]) -> list[str]:
    """As code, and inert: what an agent or a stranger wrote must mention no one and close no issue."""
    there = [inert(text.strip()) for text in texts if text.strip()]
    longest = max((len(run) for text in there for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}text", *there, fence] if there else []


def _section(title: str, lines: Sequence[str]) -> str:
    return f"### {title}\n\n" + "\n".join(lines) if lines else ""


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}\n[... cut ...]"


@dataclass(frozen=True, kw_only=True)
class IssueNews:
    """The news that an issue gets of its ticket. `lines` may name a pull request, a question or a reason."""

    ticket: int
    state: str
    lines: Sequence[str] = field(default_factory=tuple)


def issue_key(ticket: int) -> str:
    return f"issue ticket={ticket}"


def issue_comment(news: IssueNews) -> str:
    parts = [f"Legion: ticket {news.ticket} is **{news.state}**.", *news.lines, marker(issue_key(news.ticket))]
    return "\n\n".join(part for part in parts if part)


def answer_text(source: str, commit: str) -> str:
    """The answer in the thread of a comment that was dealt with."""
    return f"The agent's next change is {commit[:12]}.\n\n{marker(f'answer {source}')}"


# Questions that a comment at a forge may answer, and how such a comment is written.
#
# A person who may write to the repository decides about the work. What the agent may use on this machine, what it may
# spend, and whether a change lands past a gate stays with the person who runs Legion.

BY_COMMENT = frozenset({QuestionKind.ASK, QuestionKind.ATTEMPTS, QuestionKind.CONFLICT, QuestionKind.REVIEW})


def question_text(question: Question) -> str:
    """The question as the issue's comment shows it, with the way to answer."""
    if question.kind not in BY_COMMENT:
        head = f"Question {question.id} waits for the person who runs Legion:"
        return "\n".join([head, "", *fenced([question.words])])
    answers = " or ".join(f"`/legion answer {question.id} {choice}`" for choice in question.choices)
    how = answers or f"`/legion answer {question.id} TEXT`"
    head = f"Question {question.id}. Answer with a comment, {how}:"
    return "\n".join([head, "", *fenced([question.words])])


def answered_question(waiting: tuple[Question, ...], given: CommentAnswer) -> Question | None:
    """The open question that a comment answers; None where there is none, or where it is not clear which."""
    possible = [one for one in waiting if one.kind in BY_COMMENT]
    if given.question is not None:
        return next((one for one in possible if one.id == given.question), None)
    return possible[0] if len(possible) == 1 else None


def choice_and_reason(question: Question, text: str) -> tuple[str, str]:
    """The choice and the text after it; all of the text where the question has no choices."""
    if not question.choices:
        return text, ""
    choice, _, rest = text.partition(" ")
    return choice.strip().lower().rstrip(".,:"), rest.strip()
