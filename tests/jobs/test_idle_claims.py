"""A standing agent that claims a ticket and idles is reminded, and then the person is asked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import update

from legion.domain.agents.agent import ROOT, STANDING, Agent
from legion.domain.agents.mail import Delivery, Message
from legion.domain.questions import LEAVE, RELEASE, Question
from legion.domain.runs import Outcome
from legion.domain.scheduling.after_turn import MOST_REMINDERS, PATIENCE
from legion.domain.tickets.ticket import State
from legion.jobs.background import housekeeping
from legion.jobs.turn import claimed_tickets
from legion.store.board import questions, tickets
from legion.store.database import schema
from legion.store.staff import agents, mail, ticket_holders
from legion.store.work import runs
from legion.wire.agents import HireAgent
from legion.wire.mail import AnswerQuestion
from tests.support.board import Board


@pytest.fixture(scope="module")
def one_board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    one = Board(tmp_path_factory.mktemp("claims"))
    yield one
    one.close()


@pytest.fixture
def board(one_board: Board) -> Board:
    one_board.reset()
    return one_board


def holder(board: Board) -> Agent:
    """An agent that has claimed ticket 1 and ended its turn."""
    board.put(1, "Export", driver=STANDING, command="")
    hired = board.service.hire(HireAgent(task="work", cwd=board.cwd, name="boss"))
    with board.store.write() as tx:
        agent = agents.get(tx, hired.id)
        claimed_tickets.claim(tx, agent, tickets.get(tx, 1))
    turn(board, agent)
    return agent


def turn(board: Board, agent: Agent) -> None:
    """It reads its mail and does nothing."""
    with board.store.write() as tx:
        run = runs.start_turn(tx, agent, "prompt")
        for message in mail.offer(tx, agent.id, "prompt"):
            mail.move(tx, message, Delivery.HEARD)
        runs.end(tx, run.id, Outcome.FINISHED)


def wait(board: Board, seconds: float) -> None:
    """So much time passes."""
    with board.store.write() as tx:
        for table, columns in ((schema.runs, ("started_at", "ended_at")), (schema.claimed_tickets, ("since",))):
            moved = {name: table.c[name] - seconds for name in columns}
            tx.execute(update(table).values(moved))
        tx.execute(update(schema.mail).values(sent_at=schema.mail.c.sent_at - seconds))


def reminders(board: Board, agent: Agent) -> list[Message]:
    with board.store.read() as tx:
        return [one for one in mail.waiting(tx, agent.id) if one.sender == ROOT]


def asked(board: Board) -> tuple[Question, ...]:
    with board.store.read() as tx:
        return questions.open_ones(tx)


def idle_until_asked(board: Board) -> Agent:
    agent = holder(board)
    for _ in range(MOST_REMINDERS):
        wait(board, PATIENCE + 1)
        housekeeping.look(board.context)
        assert len(reminders(board, agent)) == 1
        assert asked(board) == ()
        turn(board, agent)
    wait(board, PATIENCE + 1)
    housekeeping.look(board.context)
    return agent


def test_an_agent_that_was_idle_for_a_short_time_or_has_mail_is_left_alone(board: Board):
    agent = holder(board)
    housekeeping.look(board.context)
    assert reminders(board, agent) == []
    wait(board, PATIENCE + 1)
    housekeeping.look(board.context)
    before = board.last_event
    housekeeping.look(board.context)
    assert board.last_event == before, "one reminder at a time"


def test_after_the_reminders_the_person_is_asked_once_and_can_release_the_ticket(board: Board):
    agent = idle_until_asked(board)
    assert reminders(board, agent) == []
    (question,) = asked(board)
    assert "boss holds ticket 1 (Export)" in question.words
    housekeeping.look(board.context)
    assert asked(board) == (question,)
    answer = board.service.answer(question.id, AnswerQuestion(choice=RELEASE))
    assert answer.message == "Ticket 1 is back on the board."
    assert board.tickets[1].state is State.QUEUED
    with board.store.read() as tx:
        assert ticket_holders.of_ticket(tx, 1) is None


def test_a_person_may_leave_the_ticket_with_the_agent_and_is_not_asked_again(board: Board):
    idle_until_asked(board)
    (question,) = asked(board)
    board.service.answer(question.id, AnswerQuestion(choice=LEAVE))
    wait(board, 10 * PATIENCE)
    before = board.last_event
    housekeeping.look(board.context)
    assert (asked(board), board.last_event) == ((), before)
    assert board.tickets[1].state is State.WORKING
