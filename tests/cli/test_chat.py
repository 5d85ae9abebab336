"""`legion tell chat` over the real service, where no turn starts. tests/scenarios/test_leader.py has the answers."""

from __future__ import annotations

import json

from legion.store.staff import mail
from legion.wire.agents import HireAgent
from legion.wire.projects import Where
from tests.support.board import Board


def hire(board: Board) -> str:
    return board.service.hire(HireAgent(task="Lead this project.", name="ada", role="leader", cwd=board.cwd)).id


def test_without_a_leader_the_command_that_hires_one_is_named(legion, board: Board):
    for words in (("chat",), ("chat", "-m", "Hello."), ("chat", "--json")):
        ended = legion(*words)
        assert ended.code == 3
        assert "Hire one: legion agents hire 'Lead this project.' --role leader --name leader" in ended.out + ended.err


def test_the_conversation_is_there_at_the_next_start(legion, board: Board):
    id = hire(board)
    with board.store.write() as tx:
        mail.send(tx, sender=id, recipient="root", text="Ready.")
    page = json.loads(legion("chat", "--json").out)
    assert (page["leader"]["name"], [one["text"] for one in page["messages"]]) == (
        "ada",
        ["Lead this project.", "Ready."],
    )


def test_a_message_that_gets_no_answer_in_time_is_not_lost(legion, board: Board):
    hire(board)
    ended = legion("chat", "-m", "What is open?", "--timeout", "0.1")
    assert (ended.code, "is still working; `legion tell chat` shows its answer" in ended.err) == (75, True)
    assert [one["text"] for one in json.loads(legion("chat", "--json").out)["messages"]][-1] == "What is open?"
    assert legion("chat", "-m", " ").code == 2


def test_a_leader_of_a_paused_project_answers_later_and_the_command_says_so(legion, board: Board):
    hire(board)
    board.service.pause(Where(cwd=board.cwd))
    ended = legion("chat", "-m", "What is open?")
    assert (ended.code, ended.err) == (75, "ada gets the message later: it waits for `legion resume`.\n")
