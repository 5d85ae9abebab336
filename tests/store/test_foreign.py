"""A database of legion_cc lies where ours would: it is recognized and left alone."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from legion.store.database.full_copy import is_foreign
from legion.store.database.transactions import Store, sqlite_url
from legion.system.paths import DataDir


def test_only_a_database_of_legion_cc_is_foreign_and_reading_it_leaves_no_trace(tmp_path: Path):
    theirs, ours, text = (tmp_path / name for name in ("theirs.db", "ours.db", "text.db"))
    with sqlite3.connect(theirs) as database:
        database.executescript("CREATE TABLE squad_sessions (name TEXT); CREATE TABLE tickets (id INTEGER);")
    database.close()
    store = Store(sqlite_url(ours))
    store.migrate()
    store.close()
    text.write_text("no database")
    before = theirs.read_bytes(), {file.name for file in tmp_path.iterdir()}
    assert [is_foreign(file) for file in (theirs, ours, text, tmp_path / "missing.db")] == [True, False, False, False]
    assert (theirs.read_bytes(), {file.name for file in tmp_path.iterdir()}) == before


def test_tables_that_are_still_in_the_write_ahead_log_alone_are_seen(tmp_path: Path):
    theirs = tmp_path / "theirs.db"
    writes = sqlite3.connect(theirs)
    writes.executescript(
        "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE squad_sessions (n TEXT);"
    )
    assert is_foreign(theirs)
    writes.close()


def test_our_database_has_the_second_name_only_where_it_was_made_so(tmp_path: Path):
    data = DataDir(tmp_path)
    assert data.database.name == "legion.db"
    data.second_database.touch()
    assert data.database == data.second_database
