"""The formats of four programs, read from files that the real programs wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from legion.conversations.conversation import ConversationFacts, ConversationProgram, EntryRole, TokenSums
from legion.conversations.formats import legion_run, opencode
from legion.conversations.line_files import SEPARATOR, read_all, read_part
from legion.conversations.places import FORMATS
from tests.conversations.home import CLAUDE, CODEX, GEMINI, OPENCODE, Home, said

ALL = 1 << 30
TOKENS = {
    CLAUDE: {"claude-sonnet-4-5": TokenSums(input=22499, output=86, cache_read=1000, cache_write=100)},
    CODEX: {"claude-sonnet-4-5": TokenSums(input=19894, output=58)},
    GEMINI: {"gemini-2.5-pro": TokenSums(input=2200, output=80, cache_read=200)},
}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path).fill()


def facts_of(home: Home, program: ConversationProgram) -> tuple[ConversationFacts, list[tuple[EntryRole, str]]]:
    (file,) = [one for one in home.places.found() if one.program is program]
    facts = FORMATS[program].begin(Path(file.path))
    part = read_part(Path(file.path), FORMATS[program], facts, 0, ALL)
    assert part.offset == file.size
    return facts, [(entry.role, entry.text) for entry in part.entries]


@pytest.mark.parametrize(
    ("program", "id"),
    [(ConversationProgram.CLAUDE, CLAUDE), (ConversationProgram.CODEX, CODEX), (ConversationProgram.GEMINI, GEMINI)],
    ids=lambda one: one.value if isinstance(one, ConversationProgram) else "",
)
def test_a_conversation_is_read_with_its_facts_and_entries(home: Home, program: ConversationProgram, id: str):
    facts, entries = facts_of(home, program)
    assert (facts.id, facts.folder, facts.messages, facts.broken) == (id, "/home/ada/shop", 3, 0)
    assert facts.first_prompt == facts.last_prompt
    assert facts.last_prompt.endswith("Please look at the file")
    assert facts.last_answer == "The file says hello. The zebra is done."
    assert facts.tokens == TOKENS[id]
    assert 1794833500 < facts.started_at < facts.ended_at < 1794833700
    roles = [role for role, _ in entries]
    assert roles == [EntryRole.PERSON, EntryRole.AGENT, EntryRole.CALL, EntryRole.RESULT, EntryRole.AGENT]
    assert "cat a.txt" in entries[2][1]
    assert "hello" in entries[3][1]


def test_claude_code_reports_its_own_cost_and_its_branch(home: Home):
    facts, _ = facts_of(home, ConversationProgram.CLAUDE)
    assert (facts.usd, facts.branch) == (0.069462, "master")


def test_a_session_of_opencode_is_read_from_its_database(home: Home):
    before = home.opencode.stat()
    with opencode.opened(home.opencode) as database:
        assert [id for id, _ in opencode.sessions(database)] == [OPENCODE]
        found = opencode.read(database, OPENCODE)
        assert opencode.read(database, "ses_none") is None
    assert found is not None
    facts, entries = found
    assert (facts.title, facts.folder, facts.messages) == ("Rehearsal", "/home/ada/shop", 3)
    assert facts.usd == pytest.approx(0.047226)
    assert [entry.role for entry in entries] == [
        *(EntryRole.PERSON, EntryRole.AGENT, EntryRole.CALL, EntryRole.RESULT, EntryRole.AGENT)
    ]
    assert [one.text for one in read_all(f"{home.opencode}{SEPARATOR}{OPENCODE}", None)] == [
        entry.text for entry in entries
    ]
    assert sorted(path.name for path in home.opencode.parent.iterdir()) == ["opencode.db"], "nothing is written there"
    assert home.opencode.stat().st_mtime_ns == before.st_mtime_ns


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"null",
        b"7",
        b'{"type":"user","message":7}',
        b'{"type":"assistant","message":{"content":"x"}}',
        b"\xff\xfe",
    ],
    ids=["torn", "null", "number", "no-message", "no-blocks", "no-text"],
)
def test_a_broken_line_is_skipped_and_counted(home: Home, line: bytes):
    home.append(home.claude, line + b"\n" + said("Still readable."))
    facts, entries = facts_of(home, ConversationProgram.CLAUDE)
    assert (facts.broken, facts.last_answer, len(entries)) == (1, "Still readable.", 6)


def test_a_line_that_is_still_written_is_read_when_it_is_complete(home: Home):
    line = said("Later.")
    home.append(home.claude, line[:50])
    format, facts = FORMATS[ConversationProgram.CLAUDE], FORMATS[ConversationProgram.CLAUDE].begin(home.claude)
    first = read_part(home.claude, format, facts, 0, ALL)
    assert (first.offset, facts.broken) == (home.claude.stat().st_size - 50, 0)
    home.append(home.claude, line[50:])
    second = read_part(home.claude, format, facts, first.offset, ALL)
    assert [entry.text for entry in second.entries] == ["Later."]


def test_half_a_character_is_no_broken_line(home: Home):
    home.append(home.claude, said("cut \ud83d"))
    facts, entries = facts_of(home, ConversationProgram.CLAUDE)
    assert (facts.broken, len(entries)) == (0, 6)


@pytest.mark.parametrize(
    ("line", "title"),
    [
        (b'{"type":"ai-title","aiTitle":"Look at  the\\nfile","sessionId":"x"}', "Look at the file"),
        (b'{"type":"custom-title","customTitle":"Mine","sessionId":"x"}', "Mine"),
        (b'{"type":"summary","summary":"Looked","leafUuid":"x"}', "Looked"),
        (b'{"type":"ai-title","aiTitle":7}', ""),
    ],
    ids=["made", "given", "summary", "malformed"],
)
def test_a_title_of_claude_code_is_taken(home: Home, line: bytes, title: str):
    home.append(home.claude, line + b"\n")
    assert facts_of(home, ConversationProgram.CLAUDE)[0].title == title


def test_what_claude_code_wrote_in_the_persons_name_is_no_prompt(home: Home):
    home.append(home.claude, b'{"type":"user","message":{"content":"<command-name>/clear</command-name>"}}\n')
    home.append(home.claude, b'{"type":"user","isMeta":true,"message":{"content":"Note this."}}\n')
    facts, entries = facts_of(home, ConversationProgram.CLAUDE)
    assert (facts.messages, len(entries)) == (3, 5)


def test_a_subagent_names_its_conversation(tmp_path: Path):
    facts = FORMATS[ConversationProgram.CLAUDE].begin(tmp_path / CLAUDE / "subagents" / "agent-a1.jsonl")
    assert (facts.id, facts.parent) == ("agent-a1", CLAUDE)


def test_a_journal_of_a_run_is_read(tmp_path: Path):
    journal = tmp_path / "ticket-3-run-7" / "journal.jsonl"
    journal.parent.mkdir()
    journal.write_text(
        '{"version":1,"number":1,"time":5.0,"kind":"said","text":"Hello."}\n'
        '{"version":1,"number":2,"time":6.0,"kind":"called","tool":"Bash","input":"ls"}\n'
        '{"version":1,"number":3,"time":7.0,"kind":"returned","head":"a.txt"}\n'
    )
    facts = legion_run.FORMAT.begin(journal)
    part = read_part(journal, legion_run.FORMAT, facts, 0, ALL)
    assert (facts.id, facts.messages, facts.last_answer, facts.ended_at) == ("ticket-3-run-7", 1, "Hello.", 7.0)
    assert [entry.text for entry in part.entries] == ["Hello.", "Bash: ls", "a.txt"]
