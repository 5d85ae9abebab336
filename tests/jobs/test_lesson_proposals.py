"""A landing is looked at for a lesson once, whatever came of it, and its reader is paid from the project's money."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.config.files.user import CurrentSettings, UserConfig
from legion.config.sections.limits import BudgetSettings
from legion.domain.errors import NotAllowed
from legion.domain.notes import MOST_FOR_AGENTS, NoteKind
from legion.domain.runs import Outcome
from legion.domain.scheduling.usage import Spending, Usage
from legion.domain.tickets.ticket import Cause, Change, Land, Propose, Prove, Start, TryAgain
from legion.jobs.background.lesson_proposals import LessonProposals
from legion.jobs.supervise import usage as money
from legion.store.board import notes, tickets
from legion.store.work import runs, usage
from tests.support.attacks import Attacker, Door, attack
from tests.support.board import Board


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Board]:
    one = Board(tmp_path)
    yield one
    one.close()


def land_after_a_failure(board: Board, number: int) -> None:
    board.put(number)
    board.context.project(1).hub.fetch_branch(board.repository.root / ".git", "change")
    change = Change(base=board.base, commit=board.change)
    with board.store.write() as tx:
        for attempt, saved in ((1, board.base), (2, board.change)):
            tickets.move(tx, number, Start(board.base))
            runs.end(tx, runs.start(tx, number, attempt).id, Outcome.FINISHED, saved=saved)
            tickets.move(tx, number, Propose(change))
            if attempt == 1:
                tickets.move(tx, number, TryAgain("checks failed: `make test`", "mend it", cause=Cause.CHECKS))
        tickets.move(tx, number, Prove())
        tickets.move(tx, number, Land(board.change))


def lessons(board: Board) -> list[int | None]:
    with board.store.read() as tx:
        return [one.ticket for one in notes.for_agents(tx, 1) if one.ticket is not None]


def test_a_landing_is_looked_at_once_also_if_nothing_came_of_it(board: Board):
    with board.store.write() as tx:
        known = [notes.add(tx, 1, NoteKind.MEMORY, f"Memory {number}") for number in range(MOST_FOR_AGENTS)]
    land_after_a_failure(board, 1)
    LessonProposals(board.context).look()
    assert lessons(board) == [], "there is no room for it"
    with board.store.write() as tx:
        for one in known[:5]:
            notes.close(tx, 1, one.id, by="root")
    # The next daemon.
    LessonProposals(board.context).look()
    assert lessons(board) == []
    land_after_a_failure(board, 2)
    LessonProposals(board.context).look()
    assert lessons(board) == [2]


def test_a_lesson_that_ten_tickets_had_in_vain_retires_and_a_pinned_one_stays(board: Board):
    with board.store.write() as tx:
        kept, pinned = (
            notes.add(tx, 1, NoteKind.LESSON, text, pinned=text == "Pinned.") for text in ("In vain.", "Pinned.")
        )
        for one in (kept, pinned):
            notes.accept(tx, 1, one.id, by="root")
    for place in range(1, 11):
        with board.store.write() as tx:
            notes.record_uses(tx, place, [kept, pinned])
        assert len(lessons_of(board)) >= 2, "nine say nothing yet"
        land_after_a_failure(board, place)
        LessonProposals(board.context).look()
    assert "In vain." not in lessons_of(board)
    assert "Pinned." in lessons_of(board)
    with board.store.read() as tx:
        gone = notes.get(tx, 1, kept.id)
    assert gone.outcome == "did not help: 2.0 attempts in 10 tickets with it"


def lessons_of(board: Board) -> list[str]:
    with board.store.read() as tx:
        return [one.text for one in notes.lessons(tx, 1)]


@attack(Attacker.AGENT, Door.MONEY)
def test_a_reader_of_lessons_is_not_paid_from_a_spent_budget(board: Board):
    object.__setattr__(board.context, "settings", CurrentSettings(UserConfig(budgets=BudgetSettings(project_usd=1.0))))
    with board.store.write() as tx:
        asked = runs.start_ask(tx, 1, "lesson")
        money.refuse_without_money(board.context, tx, 1)
        spent = Spending(run=asked.id, provider="p", model="m", day="2026-01-01", usage=Usage(usd=1.0))
        usage.add(tx, [spent])
        with pytest.raises(NotAllowed, match="the project's budget of"):
            money.refuse_without_money(board.context, tx, 1)
