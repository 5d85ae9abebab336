"""Questions as rows: what is asked, the facts, the time left, what silence means; and what was answered last."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from legion.client.text.plans import plan_row
from legion.client.text.questions import question_rows
from legion.client.text.rows import BLANK, Row, clean, head, note, paragraph, row
from legion.client.text.terminal import Colour, clock, count
from legion.wire.history import Events
from legion.wire.mail import Inbox, QuestionLine
from legion.wire.plans import PlanLine

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
        made += question_rows(question, width, now, ways(question, keys))
    return [*made, *_settled(recent, width)]


def waiting_rows(found: Inbox, width: int) -> list[Row]:
    """As `legion inbox` prints it."""
    many = len(found.questions)
    title = f"{count(many, 'question waits', 'questions wait')} for you." if many else "No question waits for you."
    now = time.time()
    return [row(title), *(line for one in found.questions for line in (BLANK, *question_rows(one, width, now)))]


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
