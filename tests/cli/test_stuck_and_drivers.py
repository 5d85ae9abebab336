"""`legion retry --stuck` in every state, and what `legion driver add` and `list` say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.board import Board


@pytest.mark.parametrize("state", ["parked", "failed", "stopped"])
def test_guidance_reaches_the_agent_whatever_the_ticket_is_stuck_in(legion, board: Board, state: str):
    board.put(1, "First", state)
    ended = legion("resume-stuck", "1", "--guidance", "The port is in $PORT.")
    assert (ended.code, ended.err) == (0, "")
    assert board.tickets[1].state.value == "queued"
    assert "The port is in $PORT." in board.tickets[1].feedback


def test_a_driver_whose_file_agents_do_not_see_is_noted(legion, tmp_path: Path):
    script = tmp_path / "agent.py"
    script.write_text("")
    added = legion("driver", "add", "mine", "--run", f"sh {script} --acp")
    assert added.code == 0
    assert f"Agents do not see {script}: add its folder to `read` in [sandbox]" in added.out + added.err
    other = legion("driver", "add", "other", "--run", "sh /usr/bin/env --acp")
    assert "Agents do not see" not in other.out + other.err
