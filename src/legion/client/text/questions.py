"""One question as rows: what is asked, the facts, the time left, what silence means, and how to answer."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from legion.client.text.rows import Row, clean, flow, paragraph
from legion.client.text.terminal import Cell, Colour, clock, duration
from legion.wire.mail import QuestionLine
from legion.wire.text import SHORT_ID

_HURRY = 600.0
"""Seconds left below which the time is shown as urgent."""
_WITH_CHANGE = ("change", "review", "gate")
_BY_LEGION = ("change", "attempts", "review", "gate", "branch", "checks")
"""Kinds of questions that Legion words. An agent's text is put on one line, so that it cannot imitate them."""


def question_rows(question: QuestionLine, width: int, now: float, ways: str = "", *more: Cell) -> list[Row]:
    """Kind, asker, text, deadline and how to answer: `ways`, or the commands that do. `more` follows the title."""
    key = str(question.id)
    left = question.deadline - now
    title = (
        Cell(f"Question {question.id}  ", Colour.BOLD),
        Cell(f"{clean(question.kind)}, ", Colour.YELLOW),
        Cell(asker(question)),
        Cell(f"  {duration(left)} left", Colour.RED if left < _HURRY else Colour.DIM),
        *more,
    )
    words = question.words if question.kind in _BY_LEGION else clean(question.words)
    made = [*flow(title, width, key=key, indent=2), *paragraph(words, width, indent=2, key=key)]
    for name, fact in question.facts.items():
        if fact not in question.words:
            text = f"{clean(name)}: {fact if ways else clean(fact)}"
            made += paragraph(text, width, indent=2, colour=Colour.DIM, key=key, most=12 if ways else None)
    if question.kind in _WITH_CHANGE and not ways and "legion diff" not in question.words:
        shows = (
            f"`legion diff {question.ticket}` shows the change, `legion try {question.ticket}` opens a tree with it."
        )
        made += paragraph(shows, width, indent=2, key=key)
    default = question.default
    silence = "left to the agent" if not default else "a no" if default == "no" else f"`{clean(default)}`"
    told = f"asked {duration(now - question.asked_at)} ago; without an answer it is {silence} at "
    told = f"{told}{clock(question.deadline)}, in {duration(left)}"
    dim = Colour.DIM
    return [
        *made,
        *paragraph(told, width, indent=2, colour=dim, key=key),
        *paragraph(ways or "   or   ".join(_commands(question)), width, indent=2, colour=dim, key=key),
    ]


def _commands(question: QuestionLine) -> Iterator[str]:
    for choice in question.choices:
        text = " 'another way ...'" if choice in ("no", "reject", "back") else " BRANCH" if choice == "bind" else ""
        yield f"legion answer {question.id} {shlex.quote(clean(choice))}{text}"
    if not question.choices:
        yield f"legion answer {question.id} 'your answer'"


def asker(question: QuestionLine) -> str:
    where = f" of {clean(question.project)}" if question.project else ""
    if question.ticket is not None:
        return f"ticket {question.ticket}{where}, {clean(question.title)}"
    return f"agent {clean(question.name or question.agent[:SHORT_ID])}{where}" if question.agent else f"all work{where}"
