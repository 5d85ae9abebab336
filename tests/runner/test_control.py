"""The control socket: any caller gets an answer, none can disturb the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from legion.runner import control, launch
from legion.runner.control import LONGEST_LINE
from legion.runner.journal import JournalKind
from legion.runner.launch import LivingRun, RunnerSilent
from legion.service.agents.tell import wait_for_delivery
from tests.runner.runs import DEADLINE, Workbench, runner_of, until


@pytest.fixture
def run(sandboxed: Workbench) -> Path:
    return sandboxed.shell("exec tail -f /dev/null")


def answer(run: Path, line: bytes) -> dict[str, Any]:
    with control.connect(run, DEADLINE) as connection, connection.makefile("rb") as answers:
        connection.sendall(line + b"\n")
        facts: dict[str, Any] = json.loads(answers.readline())
        return facts


def test_a_runner_says_who_it_is(run: Path):
    facts = answer(run, b'{"version": 1, "ask": "status"}')
    assert facts == {"version": 1, "ok": True, "run": run.name, "runner": runner_of(run).pid}


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (b'{"version": 2, "ask": "stop"}', "speaks version 1"),
        (b'{"version": 1, "ask": "dance"}', "does not know 'dance'"),
        (b'{"version": 1, "ask": ["stop"]}', "does not know"),
        (b'{"version": 1, "ask": "stop", "grace": "long"}', "not a number of seconds"),
        (b'{"version": 1, "ask": "stop", "grace": -1}', "not a number of seconds"),
        (b'{"version": 1, "ask": "stop", "grace": NaN}', "not a number of seconds"),
        (b'{"version": 1}', "not a message"),
        (b"[]", "not a message"),
        (b"\xff\x00", "not a message"),
        (b"", "not a message"),
    ],
)
def test_a_strange_message_gets_a_sentence_and_changes_nothing(run: Path, line: bytes, sentence: str):
    facts = answer(run, line)
    assert facts["ok"] is False
    assert sentence in facts["error"]
    assert launch.settle(run) == LivingRun()


def test_two_asks_in_one_packet_get_two_answers(run: Path):
    with control.connect(run, DEADLINE) as connection, connection.makefile("rb") as answers:
        connection.sendall(b'{"version": 1, "ask": "status"}\n{"version": 1, "ask": "dance"}\n{"version"')
        assert json.loads(answers.readline())["ok"] is True
        assert json.loads(answers.readline())["ok"] is False
        connection.sendall(b': 1, "ask": "status"}\n')
        assert json.loads(answers.readline())["ok"] is True


def test_a_caller_that_never_ends_its_line_is_cut_off(run: Path):
    with control.connect(run, DEADLINE) as connection, pytest.raises((BrokenPipeError, ConnectionResetError)):
        connection.sendall(b"x" * LONGEST_LINE * 100)
    assert launch.settle(run) == LivingRun()


def test_a_caller_that_hangs_up_without_reading_disturbs_nobody(run: Path):
    for _ in range(20):
        connection = control.connect(run, DEADLINE)
        connection.sendall(b'{"version": 1, "ask": "follow"}\n' * 50)
        connection.close()
    assert launch.interrupt(run)


def test_a_runner_that_does_not_answer_is_named_within_seconds(run: Path):
    runner = runner_of(run)
    runner.suspend()
    try:
        with pytest.raises(RunnerSilent, match="did not answer in 2 s"):
            launch.stop(run)
    finally:
        runner.resume()


def test_a_message_is_not_delivered_where_the_runner_died_before_its_journal_was_followed(run: Path):
    """However late the one who waits for the delivery is, the runner's end is an answer."""
    runner = runner_of(run)
    until(run, JournalKind.STARTED)
    runner.kill()
    launch.wait(run)
    assert wait_for_delivery(run, "message", DEADLINE) is False
