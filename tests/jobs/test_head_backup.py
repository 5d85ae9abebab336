"""The state of a head as a file, and all rows of a database in another one."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from legion.domain.errors import BadInput, StateConflict
from legion.jobs.backup import head
from legion.store.database import schema
from legion.store.database.full_copy import copy_all
from legion.store.database.migrations import SHIPPED
from legion.store.database.transactions import Store, sqlite_url
from legion.system.paths import DataDir
from tests.store.making import migrate_with_data
from tests.support.board import Board
from tests.support.postgres import fresh_database


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Board]:
    one = Board(tmp_path)
    yield one
    one.close()


def rows(store: Store) -> dict[str, list[tuple[object, ...]]]:
    with store.read() as tx:
        return {
            table.name: [tuple(row) for row in tx.execute(select(table).order_by(*table.primary_key))]
            for table in schema.metadata.sorted_tables
        }


def empty_head(folder: Path) -> tuple[DataDir, Store]:
    data = DataDir(folder)
    data.prepare()
    return data, Store(sqlite_url(data.database))


def test_every_row_arrives_in_postgres_and_comes_back(tmp_path: Path):
    url = sqlite_url(tmp_path / "old.db")
    old = Store(url)
    migrate_with_data(old, url, SHIPPED[-1].number)
    old.migrate()
    with fresh_database() as there:
        goal, back = Store(there), Store(sqlite_url(tmp_path / "back.db"))
        with old.read() as tx:
            count = copy_all(tx, goal)
        with goal.read() as tx:
            assert copy_all(tx, back) == count
        expected = rows(old)
        assert rows(goal) == expected
        assert rows(back) == expected
        assert sum(bool(found) for found in expected.values()) > 20
        with old.read() as tx, pytest.raises(StateConflict, match="is not empty"):
            copy_all(tx, goal)
        for store in (old, goal, back):
            store.close()


def test_a_restored_head_has_the_same_rows_and_the_same_hub(board: Board, tmp_path: Path):
    board.put(1, state="working")
    project = board.context.project(1)
    project.hub.keep("kept/1", board.change)
    done = head.write(board.context.data, board.store, tmp_path / "backup.tar")
    # What happens later is not in it.
    expected = rows(board.store)
    board.put(2)
    project.hub.move_target(board.change, expected=project.target)
    data, store = empty_head(tmp_path / "second")
    try:
        assert head.read(tmp_path / "backup.tar", data, store) == done
        assert rows(store) == expected
    finally:
        store.close()
    restored = type(project.hub)(data.project(1) / "hub.git")
    assert restored.target() == board.base
    assert restored.kept("kept/") == {"kept/1": board.change}
    assert restored.read_file(board.change, "README.txt") == b"hello, world\n"
    assert sorted(one.name for one in data.root.iterdir()) == ["legion.db", "projects", "runs"]


def test_a_restore_needs_an_empty_head_and_leaves_another_as_it_is(board: Board, tmp_path: Path):
    board.put(1)
    file = tmp_path / "backup.tar"
    head.write(board.context.data, board.store, file)
    before = rows(board.store)
    with pytest.raises(StateConflict, match="holds hubs already"):
        head.read(file, board.context.data, board.store)
    data, other = empty_head(tmp_path / "second")
    other.close()
    with pytest.raises(StateConflict, match="is not empty"):
        head.read(file, data, board.store)
    assert rows(board.store) == before
    assert list(data.projects.iterdir()) == []


@pytest.mark.parametrize("name", ["../outside", "/outside", "link"])
def test_an_archive_that_would_write_elsewhere_is_refused(name: str, tmp_path: Path):
    file = tmp_path / "some.tar"
    with tarfile.open(file, "w") as tar:
        member = tarfile.TarInfo(name)
        if name == "link":
            member.type, member.linkname = tarfile.SYMTYPE, "/etc"
        tar.addfile(member)
    data, store = empty_head(tmp_path / "second")
    with pytest.raises(BadInput, match="does not belong in a backup"):
        head.read(file, data, store)
    store.close()


@pytest.mark.parametrize("content", [b"", b"no archive", None], ids=["empty", "text", "other archive"])
def test_another_file_is_refused_with_a_sentence(content: bytes | None, tmp_path: Path):
    file = tmp_path / "some.tar"
    if content is None:
        (tmp_path / "x").write_text("x")
        with tarfile.open(file, "w") as tar:
            tar.add(tmp_path / "x", "x")
    else:
        file.write_bytes(content)
    data, store = empty_head(tmp_path / "second")
    with pytest.raises(BadInput, match="is no backup of a head"):
        head.read(file, data, store)
    store.close()


def test_a_damaged_pack_makes_no_head(board: Board, tmp_path: Path):
    file = tmp_path / "backup.tar"
    head.write(board.context.data, board.store, file)
    content = bytearray(file.read_bytes())
    at = content.rindex(b"PACK") + 40
    content[at] ^= 0xFF
    file.write_bytes(content)
    data, store = empty_head(tmp_path / "second")
    with pytest.raises(Exception, match="index-pack"):
        head.read(file, data, store)
    assert list(data.projects.iterdir()) == []
    store.close()
