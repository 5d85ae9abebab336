"""Databases with all tables in them, made once per session and copied by every test that is not about making them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from legion.store.database.transactions import Store, sqlite_url
from tests.support.postgres import create, drop, fresh_database
from tests.support.session import session_folder, take, under_test

_TEMPLATE = "migrated"


def migrated_file(place: Path) -> str:
    """An SQLite database at `place`, as the last migration leaves it."""
    session = session_folder()
    template = session / "migrated.db"

    def make() -> None:
        template.unlink(missing_ok=True)
        _migrate(f"sqlite:///{template}")

    once(session / "migrated.sqlite", make)
    shutil.copyfile(template, place)
    return f"sqlite:///{place}"


def migrated_store(place: Path) -> Store:
    """The store at `place`; a new one is a copy of the migrated database."""
    if under_test() and not place.exists():
        migrated_file(place)
    store = Store(sqlite_url(place))
    store.migrate()
    return store


@contextmanager
def migrated_database() -> Iterator[str]:
    """A Postgres database of one test's own, as the last migration leaves it."""

    def make() -> None:
        drop(_TEMPLATE)  # half made by a worker that was killed
        _migrate(create(_TEMPLATE))

    once(session_folder() / "migrated.postgres", make)
    with fresh_database(template=_TEMPLATE) as url:
        yield url


def _migrate(url: str) -> None:
    store = Store(url)
    store.migrate()
    store.close()


def once(done: Path, make: Callable[[], None]) -> None:
    """Whoever comes first makes it, and the other workers wait for that."""
    if done.exists():
        return
    making = take(done.with_name(f"{done.name}.making"))
    try:
        if not done.exists():
            make()
            done.touch()
    finally:
        os.close(making)
