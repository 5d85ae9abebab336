"""The index: what changed is read, what is gone is removed, and a kill at any commit loses and doubles nothing."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.conversations.catch_up import backlog, catch_up
from legion.conversations.conversation import ConversationProgram
from legion.conversations.index import Index, expression
from legion.conversations.refresh import Refresher
from legion.system import files
from tests.conversations.home import CLAUDE, CODEX, GEMINI, OPENCODE, Home, said


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home").fill()


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with contextlib.closing(Index(tmp_path / "index.db")) as made:
        yield made


def found(index: Index, query: str, since: float = 0.0) -> list[str]:
    return [hit.conversation.facts.id for hit in index.search(expression(query), since=since, most=20)]


def entries(index: Index) -> int:
    with contextlib.closing(sqlite3.connect(index.path)) as database:
        database.execute("INSERT INTO texts (texts, rank) VALUES ('integrity-check', 1)")
        return int(database.execute("SELECT count(*) FROM entries").fetchone()[0])


def test_every_conversation_is_found_newest_first(home: Home, index: Index):
    catch_up(index, home.places)
    assert found(index, "zebra") == [GEMINI, OPENCODE, CODEX, CLAUDE]
    assert found(index, "zebra", since=1794833600) == [GEMINI]
    assert [one.facts.id for one in index.conversations()] == [GEMINI, OPENCODE, CODEX, CLAUDE]
    assert found(index, "unicorn") == []
    assert entries(index) == 20
    progress = index.progress()
    assert (progress.files, progress.bytes_done) == (4, progress.bytes)
    work = backlog(index, home.places)
    assert (work.changed, work.gone, work.bytes) == ((), (), 0)


def test_only_what_was_added_is_read(home: Home, index: Index):
    catch_up(index, home.places)
    added = said("A unicorn appears.")
    home.append(home.claude, added)
    work = backlog(index, home.places)
    assert ([Path(file.path) for file in work.changed], work.bytes) == ([home.claude], len(added))
    catch_up(index, home.places)
    assert found(index, "unicorn") == [CLAUDE]
    assert (entries(index), index.named(CLAUDE)[0].facts.messages) == (21, 4)


@pytest.mark.parametrize("content", [b"", said("Another story.") * 40], ids=["emptied", "replaced"])
def test_a_file_that_was_replaced_is_read_afresh(home: Home, index: Index, content: bytes):
    catch_up(index, home.places)
    home.write(home.claude, content)
    catch_up(index, home.places)
    assert CLAUDE not in found(index, "zebra")
    assert (found(index, "story") == [CLAUDE]) is bool(content)
    assert entries(index) == (15 + 40 if content else 15)


def test_what_is_gone_is_removed(home: Home, index: Index):
    catch_up(index, home.places)
    home.claude.unlink()
    with contextlib.closing(sqlite3.connect(home.opencode)) as database:
        database.execute("DELETE FROM session")
        database.commit()
    catch_up(index, home.places)
    assert found(index, "zebra") == [GEMINI, CODEX]
    assert entries(index) == 10


def test_a_database_that_is_gone_takes_its_sessions_with_it(home: Home, index: Index):
    catch_up(index, home.places)
    home.opencode.unlink()
    catch_up(index, home.places)
    assert found(index, "zebra") == [GEMINI, CODEX, CLAUDE]


def test_a_session_of_opencode_is_read_again_when_it_changed(home: Home, index: Index):
    catch_up(index, home.places)
    with contextlib.closing(sqlite3.connect(home.opencode)) as database:
        database.execute("UPDATE part SET data = replace(data, 'zebra', 'unicorn')")
        database.execute("UPDATE session SET time_updated = time_updated + 1")
        database.commit()
    catch_up(index, home.places)
    assert (found(index, "unicorn"), entries(index)) == ([OPENCODE], 20)


def test_a_subagent_is_found_and_not_listed(home: Home, index: Index):
    home.write(home.claude.with_suffix("") / "subagents" / "agent-a1.jsonl", said("A unicorn."))
    catch_up(index, home.places)
    assert found(index, "unicorn") == ["agent-a1"]
    assert "agent-a1" not in [one.facts.id for one in index.conversations()]
    assert "agent-a1" in [one.facts.id for one in index.conversations(with_parts=True)]


@pytest.mark.slow
def test_a_reader_that_is_killed_after_any_commit_goes_on_there(home: Home, tmp_path: Path):
    """Each child reads with small steps and is killed after its n-th commit; the next one is not."""
    home.append(home.claude, b"".join(said(f"Step {n}.", id=f"m{n}") for n in range(30)))
    for commits in range(1, 12):
        path = tmp_path / f"index-{commits}.db"
        child = os.fork()
        if child == 0:
            killed = Index(path)
            database = killed._database
            seen = [0]

            def count(statement: str, seen: list[int] = seen, most: int = commits) -> None:
                seen[0] += statement == "COMMIT"
                if seen[0] > most:
                    os.kill(os.getpid(), signal.SIGKILL)

            database.set_trace_callback(count)
            catch_up(killed, home.places, step=2000)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status)
        with contextlib.closing(Index(path)) as index:
            catch_up(index, home.places)
            assert entries(index) == 50, f"killed after commit {commits}"
            assert index.named(CLAUDE)[0].facts.messages == 33
            assert found(index, "zebra") == [GEMINI, OPENCODE, CODEX, CLAUDE]


@pytest.mark.parametrize("content", [b"no database at all" * 100, b""], ids=["damaged", "empty"])
def test_a_damaged_index_is_made_again(home: Home, tmp_path: Path, content: bytes):
    path = home.write(tmp_path / "index.db", content)
    with contextlib.closing(Index(path)) as index:
        catch_up(index, home.places)
        assert len(found(index, "zebra")) == 4
        assert path.stat().st_mode & 0o777 == 0o600


def test_an_index_of_another_version_is_made_again(home: Home, tmp_path: Path):
    path = tmp_path / "index.db"
    Index(path).close()
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 99")
    with contextlib.closing(Index(path)) as index:
        assert index.progress().files == 0


def test_much_is_read_by_a_process_that_ends_with_its_parent(home: Home, tmp_path: Path):
    refresher = Refresher(tmp_path, lambda: home.places, at_once=100)
    assert refresher.refresh().bytes > 0, "the first answer says how much there is to read"
    progress = refresher.refresh(wait=60)
    assert (progress.finished_at > 0, refresher.reading) == (True, False)
    with contextlib.closing(Index(refresher.index)) as index:
        assert len(found(index, "zebra")) == 4
    held = files.lock(tmp_path / "conversations.db.lock")
    home.append(home.claude, said("x" * 200))
    refresher.refresh()
    assert not refresher.reading, "another process reads: nothing starts"
    held.release()
    refresher.refresh()
    process = refresher._process
    assert process is not None
    assert process.stdin is not None
    process.stdin.close()
    process.wait(60)
    assert not refresher.reading


def test_a_search_in_a_hurry_does_not_wait_for_a_long_look(home: Home, tmp_path: Path):
    refresher = Refresher(tmp_path, lambda: home.places)
    refresher.refresh()
    home.append(home.claude, said("A unicorn."))
    refresher._look_seconds = 10.0
    refresher.refresh(hurry=True)
    assert refresher._later is not None
    refresher._later.join(60)
    with contextlib.closing(Index(refresher.index)) as index:
        assert found(index, "unicorn") == [CLAUDE], "it was read behind the answer"


def test_little_is_read_at_once(home: Home, tmp_path: Path):
    refresher = Refresher(tmp_path, lambda: home.places)
    assert refresher.refresh().finished_at > 0
    assert refresher._process is None


def test_a_conversation_without_a_folder_or_time_is_no_trouble(home: Home, index: Index):
    home.write(home.claude.with_name("odd.jsonl"), b'{"type":"user","message":{"content":"hi"},"timestamp":"never"}\n')
    home.write(home.claude.with_name("far.jsonl"), said("far", at="9999-01-01T00:00:00Z"))
    catch_up(index, home.places)
    assert {one.facts.id for one in index.conversations()} >= {"odd", "far"}
    assert found(index, "far") == ["far"]


def test_files_that_are_no_files_are_passed_over(home: Home, index: Index):
    (home.claude.parent / "folder.jsonl").mkdir()
    (home.claude.parent / "dangling.jsonl").symlink_to("nowhere")
    os.mkfifo(home.claude.parent / "pipe.jsonl")
    catch_up(index, home.places)
    assert len(index.conversations()) == 4
    assert all(one.facts.program is not ConversationProgram.LEGION for one in index.conversations())
