"""`legion doctor --rebuild`: restores a lost database. Runs without a daemon, which cannot start without one."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from legion.config.files import user
from legion.daemon.main import locked
from legion.domain.errors import StateConflict
from legion.jobs.backup import restore
from legion.jobs.backup.restore import FoundBoard
from legion.store.board_records import LOST
from legion.store.database.transactions import Store, database_file, sqlite_url
from legion.system.paths import DataDir
from legion.wire.projects import BoardFound, Rebuild


def look(data_dir: Path) -> Rebuild:
    """The plan of a rebuild. Changes nothing."""
    data = DataDir(data_dir)
    with locked(data):
        return _plan(data)[2]


def rebuild(data_dir: Path) -> Rebuild:
    data = DataDir(data_dir)
    with locked(data):
        url, found, plan = _plan(data)
        done = restore.rebuild(data, url, found, time.time())
    kept = "" if done.kept is None else str(done.kept)
    return replace(plan, done=True, kept=kept, resumed=done.resumed, landed=done.landed)


def _plan(data: DataDir) -> tuple[str, tuple[FoundBoard, ...], Rebuild]:
    url = user.load().daemon.database or sqlite_url(data.database)
    condition = restore.refuse_sound(url)
    found = restore.boards(data)
    if not found:
        raise StateConflict(f"No hub in {data.projects} holds a board: there is nothing to rebuild from.")
    lines = [BoardFound(project=one.head.name, tickets=one.tickets, at=one.head.at) for one in found]
    return url, found, Rebuild(database=_name(url), condition=condition.value, boards=lines, lost=list(LOST))


def _name(url: str) -> str:
    file = database_file(url)
    if file is not None:
        return str(file)
    store = Store(url)
    store.close()
    return store.place
