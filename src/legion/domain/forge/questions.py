"""Questions that a comment at a forge may answer, and how such a comment is written.

A person who may write to the repository decides about the work. What the agent may use on this machine, what it may
spend, and whether a change lands past a gate stays with the person who runs Legion.
"""

from __future__ import annotations

from legion.domain.forge.issues import CommentAnswer
from legion.domain.forge.texts import fenced
from legion.domain.questions import Question, QuestionKind

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
