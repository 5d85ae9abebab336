"""The commands about conversations, over the real service."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conversations.home import CLAUDE, CODEX, GEMINI, OPENCODE, Home, said
from tests.support.board import Board

EVER = ("--hours", "100000")


@pytest.fixture
def home(board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    made = Home(tmp_path / "home").fill()
    monkeypatch.setenv("HOME", str(made.root))
    return made


def test_conversations_are_listed_newest_first(legion, home: Home):
    lines = legion("conversations", *EVER).out.splitlines()
    assert [line.split()[:2] for line in lines] == [
        [GEMINI[:8], "gemini"],
        [OPENCODE[:8], "opencode"],
        [CODEX[:8], "codex"],
        [CLAUDE[:8], "claude"],
    ]
    assert "shop  3 msg  $0.07  rehearsal: work. Please look at the file" in lines[3]
    home.append(home.claude, b"broken\n")
    assert "1 line could not be read and was skipped" in legion("conversations", *EVER, "--wait").out
    assert json.loads(legion("conversations", *EVER, "--json").out)["schema"] == "legion.conversations/1"
    nothing = legion("conversations", "--hours", "0.001")
    assert nothing.out == "No conversation in this time: --hours N looks further back.\n"
    assert legion("conversations", "--hours", "0").code == 2


def test_a_search_prints_the_message_and_nothing_drives_the_terminal(legion, home: Home):
    home.append(home.claude, said("A unicorn \x1b[2J\x1b]52;c;aGk=\x07 appears."))
    found = legion("search", "unicorn")
    assert found.out.splitlines()[0].startswith(f"{CLAUDE[:8]}  claude  ")
    assert found.out.splitlines()[1] == "    agent: A unicorn appears."
    assert "\x1b" not in found.out + legion("conversations", *EVER).out
    assert legion("search", "nothing").out == "Nothing found for nothing.\n"
    empty = legion("search", "*")
    assert (empty.code, "write at least one word" in empty.err) == (2, True)


def test_a_conversation_is_written_to_a_new_file_only(legion, home: Home, tmp_path: Path):
    page = tmp_path / "talk.html"
    assert legion("export", CLAUDE[:8], "-o", str(page)).err == f"Written to {page}.\n"
    assert page.read_text().startswith("<!doctype html>")
    again = legion("export", "--last", "-o", str(page))
    assert (again.code, "exists already; choose another name" in again.err) == (2, True)
    assert legion("export", "--last").out.startswith("# Please look at the file\n")
    assert json.loads(legion("export", "--last", "--format", "json").out)["conversation"]["id"] == GEMINI
    for words in ((), (CLAUDE, "--last")):
        assert "Name one conversation: its ID, or --last." in legion("export", *words).err
    assert legion("export", CLAUDE, "-o", str(tmp_path / "none" / "x.md")).code != 0


def test_reports_are_printed_as_tables(legion, home: Home):
    sums = legion("analytics", *EVER).out
    for part in ("program", "claude", "/home/ada/shop", "2026-11-16", "1 conversation with models without"):
        assert part in sums
    assert legion("analytics", "--hours", "0.001").out.startswith("No conversation in this time")
    seen = legion("health", *EVER).out
    assert seen.splitlines()[0].startswith("4 conversations, ")
    assert "orphaned: 4" in seen
    assert json.loads(legion("health", "--json", *EVER).out)["counts"]["orphaned"] == 4


def test_what_cannot_be_adopted_asked_or_handed_off_is_one_sentence(legion, board: Board, home: Home):
    board.put(1, "First", "done")
    board.put(2, "Second", "queued")
    refusals = {
        ("adopt",): f"Claude Code has no conversation in {board.cwd}",
        ("adopt", CODEX): "Only a conversation of Claude Code can be adopted",
        ("adopt", CLAUDE): "The folder /home/ada/shop of conversation",
        ("ask", "2", "Why?"): "Ticket 2 has no conversation yet; `legion wait 2` waits for its end.",
        ("ask", "2", " "): "The question is empty",
        ("ask", GEMINI, "Why?"): "Only conversations of Claude Code can be asked",
        ("ask", "", "Why?"): "Name a conversation: a ticket's number, or an id",
        ("handoff", "1"): "Ticket 1 has landed; `legion conversations ask 1 TEXT` asks its agent.",
        ("handoff", "2"): "Ticket 2 has no conversation yet; `legion drop 2` gives it up.",
    }
    for words, sentence in refusals.items():
        done = legion(*words)
        assert (done.code != 0, done.err.count("\n")) == (True, 1), words
        assert sentence in done.err


def test_the_commands_of_orchestra_stay(legion, board: Board, home: Home):
    made = legion("spawn", "Add a form", "Fix the typo", "-p", "2")
    assert made.out.splitlines() == ["Ticket ID: 1  Add a form", "Ticket ID: 2  Fix the typo"]
    assert legion("spawn").code == 2
    assert legion("cleanup").out == "0 ended tickets are off the board.\n"
    swept = legion("cleanup", "--all")
    assert (swept.err, swept.out) == ("2 tickets are stopped.\n", "2 ended tickets are off the board.\n")
    found = json.loads(legion("sessions", *EVER, "--json").out)
    assert [set(one) for one in found] == [
        {"session_id", "project_path", "modified_at", "message_count", "last_prompt"}
    ] * 4
    assert legion("sessions", *EVER).out == legion("conversations", *EVER).out
