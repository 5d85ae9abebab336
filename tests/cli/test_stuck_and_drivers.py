"""`legion retry --stuck` in every state, and what `legion driver add`, `remove` and `list` say."""

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


def test_a_removed_description_is_kept_and_comes_back(legion, tmp_path: Path):
    assert legion("driver", "add", "mine", "--run", "no-such-agent --acp").code == 0
    place = tmp_path / "programs" / "mine.toml"
    text = place.read_text()
    assert "interrupt = true" in text, "every program of the protocol can be cancelled"
    removed = legion("driver", "remove", "mine")
    assert removed.code == 0
    assert not place.exists()
    kept = tmp_path / "programs" / "mine.toml.removed"
    assert f"`legion driver add mine --file {kept}` brings it back" in removed.out
    assert legion("driver", "add", "mine", "--file", str(kept)).code == 0
    assert place.read_text() == text


def test_a_removed_change_leaves_the_shipped_description(legion, tmp_path: Path):
    change = tmp_path / "change.toml"
    change.write_text('[model]\ndefault = "gpt-5"\n')
    assert legion("driver", "add", "copilot", "--file", str(change)).code == 0
    assert "copilot is as Legion ships it again" in legion("driver", "remove", "copilot").out
    assert "gpt-5" not in legion("driver", "show", "copilot").out


def test_what_is_not_a_description_of_the_persons_stays(legion, board: Board, tmp_path: Path):
    for name, why in (
        ("copilot", "copilot comes with Legion: only a description of your own can be removed"),
        ("claude", "claude comes with Legion: only a description of your own can be removed"),
        ("nosuch", "There is no driver nosuch"),
    ):
        refused = legion("driver", "remove", name)
        assert refused.code != 0
        assert why in refused.err


def test_a_driver_that_tickets_wait_for_is_removed_with_a_note(legion, board: Board):
    assert legion("driver", "add", "mine", "--run", "sh --acp").code == 0
    board.put(3, "Third", "queued", command="", driver="mine")
    removed = legion("driver", "remove", "mine")
    assert removed.code == 0
    assert "Ticket 3 names it, and waits until there is a driver of that name again." in removed.out + removed.err


def test_a_word_behind_a_number_is_text_or_a_further_ticket(legion, board: Board):
    board.put(1, "First", "failed")
    assert legion("bounce", "1", "404").code == 0
    assert board.service.ticket(1).ticket.state == "queued"
    board.put(2, "Second", "failed")
    both = legion("retry", "2", "404")
    assert "404" in both.err
    assert both.code == 3
    assert "TEXT or --feedback" in legion("retry", "1", "a", "--feedback", "b").err
    assert "--stuck changes no texts" in legion("retry", "1", "--stuck", "-t", "new").err
