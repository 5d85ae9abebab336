"""Answers to questions whose run, ticket or facts are not what the question needs, and a question that waits."""

from __future__ import annotations

import concurrent.futures
from contextlib import suppress
from pathlib import Path

import pytest

from legion.domain.egress import NEAR, OTHER_NAME
from legion.domain.errors import Retryable
from legion.domain.questions import ALWAYS, CHOICES, FALLBACKS, QuestionKind, SettledBy
from legion.jobs.supervise.questions import QuestionSource, listener
from legion.runner.journal import JournalEvent, JournalKind
from legion.service.entry.tools.call import ToolRequest
from legion.service.entry.tools.tickets import ask
from legion.service.plain_operations import Caller
from legion.store.board import questions
from legion.store.work import runs
from legion.wire.errors import LegionError
from legion.wire.mail import AnswerQuestion
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


def test_an_agent_that_waits_for_an_answer_is_to_ask_again_when_the_daemon_ends(tmp_path: Path):
    """It would use a whole processor until its time is up, else."""
    board = Board(tmp_path)
    board.put(1, state="working")
    run = board.run(1, ended=False)
    call = ToolRequest(
        context=board.context,
        news=board.news,
        service=board.service,
        caller=Caller(id="ticket-1", ticket=1, run=run),
        arguments={"question": "Which port?"},
        request="once",
        cwd=board.cwd,
    )
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        answer = pool.submit(ask, call)
        assert board.news.waiting.acquire(timeout=20)
        board.news.close()
        with pytest.raises(Retryable, match="ask the same again"):
            answer.result(10)
    board.close()


@pytest.mark.parametrize(
    ("facts", "asked"),
    [
        ({"host": "files.example.org", "port": 443, "why": "is not in the list of `sandbox.allow`"}, True),
        ({"host": "files.example.org", "port": 443, "why": f"{NEAR} 127.0.0.1, which is this machine"}, False),
        ({"host": "files.example.org", "port": 443, "why": f"{OTHER_NAME} as 'x.org', which is another name"}, False),
        ({"host": "files.example.org", "port": "http", "why": "is closed"}, False),
        ({"host": ["files.example.org"], "why": "is closed"}, False),
        ({"host": "localhost", "port": 80, "why": "is closed"}, False),
        ({}, False),
    ],
)
def test_only_a_host_that_leave_would_open_is_asked_about(tmp_path: Path, facts: dict[str, object], asked: bool):
    board = Board(tmp_path)
    ticket = board.put(7, state="working")
    with board.context.store.read() as tx:
        run = runs.get(tx, board.run(7, ended=False))
    handle = listener(board.context, QuestionSource(project=ticket.project, ticket=7), run)
    handle(JournalEvent(number=1, time=board.context.clock(), kind=JournalKind.REFUSED.value, facts=facts))
    assert len(board.service.inbox().questions) == asked
    board.close()


@pytest.mark.parametrize(
    ("facts", "by", "why"),
    [
        ({"allowed": False}, SettledBy.SILENCE, "no answer in time"),
        ({"allowed": False, "withdrawn": True}, SettledBy.END, "its turn was interrupted first"),
    ],
)
def test_a_permission_that_nobody_answered_says_why(tmp_path: Path, facts: dict[str, object], by: SettledBy, why: str):
    board = Board(tmp_path)
    ticket = board.put(7, state="working")
    with board.context.store.read() as tx:
        run = runs.get(tx, board.run(7, ended=False))
    handle = listener(board.context, QuestionSource(project=ticket.project, ticket=7), run)
    asked: dict[str, object] = {"question": "q", "tool": "Bash", "input": "make", "rule": "Bash(make)"}
    handle(JournalEvent(number=1, time=board.context.clock(), kind="asked", facts=asked))
    handle(JournalEvent(number=2, time=board.context.clock(), kind="answered", facts={"question": "q", **facts}))
    with board.context.store.read() as tx:
        settled = questions.by_key(tx, "q")
    assert settled is not None
    assert (settled.settled_by, settled.choice, settled.why) == (by, "no", why)
    board.close()
