"""Questions as rows: what is asked, the facts, the time left, what silence means; and what was answered last."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from legion.client.text.terminal import Cell, Colour, clock, count, duration
from legion.tui.views.plans import plan_row
from legion.tui.views.rows import BLANK, Row, clean, head, note, paragraph, row
from legion.wire.history import Events
from legion.wire.plans import PlanLine
from legion.wire.questions import Inbox, QuestionLine
from legion.wire.text import SHORT_ID

_HURRY = 600.0
"""Seconds left below which the time is shown as urgent."""
_SETTLED_SHOWN = 5


def rows(
    inbox: Inbox | None,
    recent: Events | None,
    width: int,
    now: float,
    keys: Mapping[str, str],
    plans: Iterable[PlanLine] = (),
) -> list[Row]:
    """Plans that wait for the person come first: much work waits for them."""
    if inbox is None:
        return [note("Reading the inbox.")]
    made = [row for plan in plans for row in plan_row(plan, width)]
    if not inbox.questions and not made:
        made += [head("No question waits for you."), note("Agents continue by themselves; questions appear here.")]
    for question in sorted(inbox.questions, key=lambda one: one.deadline):
        made += [BLANK] if made else []
        made += question_rows(question, width, now, keys)
    return [*made, *_settled(recent, width)]


def question_rows(question: QuestionLine, width: int, now: float, keys: Mapping[str, str]) -> list[Row]:
    key = str(question.id)
    left = question.deadline - now
    made = [
        row(
            Cell(f"{question.id}  ", Colour.BOLD),
            Cell(f"{clean(question.kind)}  ", Colour.YELLOW),
            Cell(asker(question)),
            Cell(f"  {duration(left)} left", Colour.RED if left < _HURRY else Colour.DIM),
            key=key,
        ),
        *paragraph(question.words, width, indent=3, key=key),
    ]
    for name, fact in question.facts.items():
        if fact not in question.words:
            made += paragraph(f"{clean(name)}: {fact}", width, indent=3, colour=Colour.DIM, key=key, most=12)
    silence = (
        f"at {clock(question.deadline)} it is settled with `{clean(question.default)}`"
        if question.default
        else "without an answer the agent decides"
    )
    made.append(row(Cell(f"   {ways(question, keys)}; {silence}", Colour.DIM), key=key))
    return made


def asker(question: QuestionLine) -> str:
    if question.ticket is not None:
        return f"#{question.ticket} {clean(question.title)}"
    if question.agent:
        return f"agent {clean(question.name or question.agent[:SHORT_ID])}"
    return f"all work of {clean(question.project)}" if question.project else "all work"


def ways(question: QuestionLine, keys: Mapping[str, str]) -> str:
    yes, no = choice_for(question, yes=True), choice_for(question, yes=False)
    parts = [f"{keys['yes']} {clean(yes)}"] if yes else []
    parts += [f"{keys['no']} {clean(no)}"] if no else []
    more = len(question.choices) - len(parts)
    if more > 0 or not question.choices:
        parts.append(f"{keys['answer']} {'in words' if not question.choices else f'{more} more'}")
    return ", ".join(parts)


def choice_for(question: QuestionLine, *, yes: bool) -> str:
    """The choice behind the keys for yes and no; empty where the question has none."""
    wanted = "yes" if yes else "no"
    if wanted in question.choices:
        return wanted
    place = 0 if yes else 1
    return question.choices[place] if len(question.choices) > place else ""


def alike(questions: Iterable[QuestionLine], one: QuestionLine) -> list[QuestionLine]:
    """Those of the same kind with the same choices: they can be answered together."""
    return [other for other in questions if other.kind == one.kind and other.choices == one.choices]


def _settled(recent: Events | None, width: int) -> list[Row]:
    settled = [one for one in recent.lines if one.kind == "question.settled"] if recent is not None else []
    if not settled:
        return []
    made = [BLANK, note(f"The last {count(min(len(settled), _SETTLED_SHOWN), 'answer')}")]
    for one in reversed(settled[-_SETTLED_SHOWN:]):
        choice = clean(str(one.data.get("choice") or ("yes" if one.data.get("allowed") else "no")))
        where = f"#{one.ticket} " if one.ticket else ""
        why = clean(str(one.data.get("why") or ""))
        made += paragraph(
            f"{clock(one.at)}  question {one.data.get('question')} {where}{choice}  {why}", width, colour=Colour.DIM
        )
    return made
