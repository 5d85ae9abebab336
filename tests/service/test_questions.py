"""Answers to questions whose run, ticket or facts are not what the question needs."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from legion.domain.questions import ALWAYS, CHOICES, FALLBACKS, QuestionKind
from legion.wire.errors import LegionError
from legion.wire.questions import AnswerQuestion
from tests.support.board import Board

PERMISSIONS = (*CHOICES[QuestionKind.PERMISSION], ALWAYS)


def test_a_question_without_run_and_facts_is_answered_or_refused_in_one_sentence(tmp_path: Path):
    board = Board(tmp_path)
    for kind in QuestionKind:
        choices = PERMISSIONS if kind is QuestionKind.PERMISSION else CHOICES[kind]
        for choice in choices or ("text",):
            for ticket in (None, 7):
                board.reset()
                board.put(7, state="parked")
                board.ask(1, kind=kind, ticket=ticket, words="?", choices=choices, fallback=FALLBACKS[kind])
                with suppress(LegionError):
                    assert board.service.answer(1, AnswerQuestion(choice=choice, why="")).message
    board.close()


def test_a_permission_of_a_run_that_is_gone_counts_as_no(tmp_path: Path):
    board = Board(tmp_path)
    board.put(7, state="working")
    board.ask(1, ticket=7)
    answered = board.service.answer(1, AnswerQuestion(choice="yes", why=""))
    assert (answered.allowed, board.question(1).choice) == (False, "no")
    assert "has ended and cannot receive an answer" in answered.message
    board.close()
