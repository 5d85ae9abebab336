"""`legion machine head`: backup, restore and the move to Postgres. Needs no daemon; a backup does not disturb one."""

from __future__ import annotations

from pathlib import Path

from legion.config.files import user
from legion.daemon.main import locked
from legion.domain.errors import BadInput, StateConflict
from legion.jobs.backup import head
from legion.store.database.full_copy import copy_all
from legion.store.database.transactions import Store, database_file, sqlite_url
from legion.system.paths import DataDir
from legion.wire.machines import HeadState


def backup(data_dir: Path, file: Path) -> HeadState:
    """The daemon may serve meanwhile; it waits while the rows are read."""
    data = DataDir(data_dir)
    url = _database(data)
    found = database_file(url)
    if found is not None and not found.exists():
        raise StateConflict(f"There is no database {found}: nothing to back up.")
    store = Store(url)
    try:
        store.migrate()
        done = head.write(data, store, file.absolute())
    finally:
        store.close()
    return HeadState(rows=done.rows, projects=list(done.projects), place=str(file), bytes=done.bytes)


def restore(data_dir: Path, file: Path) -> HeadState:
    data = DataDir(data_dir)
    with locked(data):
        store = Store(_database(data))
        try:
            done = head.read(file.absolute(), data, store)
        finally:
            store.close()
    return HeadState(rows=done.rows, projects=list(done.projects), place=store.place, bytes=done.bytes)


def move(data_dir: Path, url: str) -> HeadState:
    """From SQLite to the Postgres behind `url`. The old file stays under another name."""
    data = DataDir(data_dir)
    if database_file(url) is not None:
        raise BadInput(
            "Name a Postgres database: legion machine head move postgresql://USER@HOST/NAME. "
            "The way back to SQLite is a backup, restored into a new data directory: see docs/scale.md."
        )
    if user.load().daemon.database:
        raise StateConflict("Your settings name a Postgres already: `daemon.database`, see `legion config`.")
    with locked(data):
        if not data.database.exists():
            raise StateConflict(f"There is no database {data.database}: set `daemon.database` and start with that one.")
        old = data.database
        source, goal = Store(sqlite_url(old)), Store(url)
        try:
            source.migrate()
            with source.read() as tx:
                rows = copy_all(tx, goal)
        finally:
            source.close()
            goal.close()
        kept = data.moved_database
        old.rename(kept)
    return HeadState(rows=rows, projects=[], place=goal.place, kept=str(kept))


def _database(data: DataDir) -> str:
    return user.load().daemon.database or sqlite_url(data.database)
