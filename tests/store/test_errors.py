"""What a person reads when the database cannot be used: one sentence that says what to do, and nothing is changed."""

from __future__ import annotations

import contextlib
import os
import pwd
import resource
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url
from sqlalchemy.exc import DBAPIError

from legion.domain.errors import LegionError, NotFound, Retryable
from legion.domain.events import EventKind
from legion.store import events
from legion.store.board import tickets
from legion.store.database import errors
from legion.store.database.errors import (
    StoreBroken,
    StoreBusy,
    StoreFull,
    StoreReadOnly,
    StoreUnreachable,
    UnknownDatabase,
)
from legion.store.database.transactions import Store, sqlite_url
from tests.store.making import add_project, add_ticket, in_a_process


def one_sentence(error: LegionError) -> bool:
    text = error.message
    return text.endswith(".") and ": " in text and "\n" not in text and text[0].isupper()


@pytest.mark.parametrize(
    "url", ["", "nonsense", "mysql://ada@host/name", "sqlite://", "sqlite:///:memory:", "postgresql://host:port/x"]
)
def test_a_url_of_no_database_we_know_is_refused(url):
    with pytest.raises(UnknownDatabase) as caught:
        Store(url)
    assert one_sentence(caught.value)
    assert "sqlite:///FILE" in caught.value.message


def test_postgres_urls_may_be_spelt_as_other_programs_do(postgres_url):
    url = make_url(postgres_url)
    for name in ("postgres", "postgresql"):
        store = Store(url.set(drivername=name).render_as_string(hide_password=False))
        store.migrate()
        store.close()


def test_a_missing_folder_is_said(tmp_path):
    with pytest.raises(StoreReadOnly, match="check that its folder exists") as caught:
        Store(sqlite_url(tmp_path / "nowhere" / "legion.db")).migrate()
    assert one_sentence(caught.value)


@pytest.fixture
def somebody() -> int:
    """A user for whom permissions count; root passes them all."""
    if os.geteuid() != 0:
        return os.geteuid()
    with contextlib.suppress(KeyError):
        return pwd.getpwnam("nobody").pw_uid
    pytest.skip("root may write everywhere, and there is no user nobody")


def as_user(user: int, work) -> int:
    def dropped() -> None:
        os.setuid(user)
        work()

    return in_a_process(dropped)


@pytest.fixture
def open_folder(tmp_path: Path, somebody: int) -> Path:
    """A folder that another user can reach."""
    folder = tmp_path
    while folder.parent != folder and folder.parent.name:
        if folder.stat().st_uid == os.geteuid():
            folder.chmod(folder.stat().st_mode | 0o055)
        folder = folder.parent
    return tmp_path


def test_a_read_only_folder_is_said(open_folder, somebody):
    open_folder.chmod(0o555)

    def migrate() -> None:
        with pytest.raises(StoreReadOnly) as caught:
            Store(sqlite_url(open_folder / "legion.db")).migrate()
        assert one_sentence(caught.value)

    assert as_user(somebody, migrate) == 0
    open_folder.chmod(0o755)


def test_a_read_only_file_is_said(open_folder, somebody):
    file = open_folder / "legion.db"
    store = Store(sqlite_url(file))
    store.migrate()
    store.close()
    file.chmod(0o444)
    open_folder.chmod(0o555)

    def write() -> None:
        with pytest.raises(StoreReadOnly) as caught, Store(sqlite_url(file)).write() as tx:
            add_project(tx)
        assert one_sentence(caught.value)

    assert as_user(somebody, write) == 0
    open_folder.chmod(0o755)


def test_a_file_that_is_no_database_is_said_and_left_alone(tmp_path):
    file = tmp_path / "legion.db"
    file.write_bytes(b"this is a letter to my mother, and no database\n" * 100)
    before = file.read_bytes()
    with pytest.raises(StoreBroken) as caught:
        Store(sqlite_url(file)).migrate()
    assert one_sentence(caught.value)
    assert file.read_bytes() == before


def test_a_damaged_database_is_said(tmp_path):
    file = tmp_path / "legion.db"
    store = Store(sqlite_url(file))
    store.migrate()
    with store.write() as tx:
        add_project(tx)
        for _ in range(200):
            add_ticket(tx, 1, context="x" * 500)
    store.close()
    pages = bytearray(file.read_bytes())
    pages[4096 * 3 :] = b"\xa5" * (len(pages) - 4096 * 3)
    file.write_bytes(pages)
    store = Store(sqlite_url(file))
    with pytest.raises(StoreBroken) as caught, store.read() as tx:
        tickets.get_many(tx, range(1, 201))
    assert one_sentence(caught.value)
    store.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for little more than an empty database."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2200k", "none", folder], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("a small disk can be made only by root with the right to mount")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_full_disk_is_said_and_loses_nothing(small_disk):
    store = Store(sqlite_url(small_disk / "legion.db"))
    store.migrate()
    with store.write() as tx:
        add_project(tx)
    written = 0

    def fill() -> None:
        nonlocal written
        while True:
            with store.write() as tx:
                add_ticket(tx, 1, context="x" * 20_000)
            written += 1

    with pytest.raises(StoreFull) as caught:
        fill()
    assert one_sentence(caught.value)
    assert isinstance(caught.value, Retryable)
    with store.read() as view:
        assert len(tickets.live(view)) == written > 0
        assert events.last(view) == 1 + written
    store.close()


def test_after_a_full_disk_has_room_again_writing_goes_on(small_disk):
    ballast = small_disk / "ballast"
    store = Store(sqlite_url(small_disk / "legion.db"))
    store.migrate()
    with store.write() as tx:
        add_project(tx)
    use_up(ballast)
    with pytest.raises(StoreFull), store.write() as tx:
        add_ticket(tx, 1, context="x" * 20_000)
    ballast.unlink()
    with store.write() as tx:
        assert add_ticket(tx, 1, context="x" * 20_000).id == 1
    store.close()


def test_a_side_file_that_cannot_grow_means_a_full_disk():
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_SHMSIZE
    assert isinstance(errors.translate(DBAPIError("", None, error), "legion.db"), StoreFull)


def use_up(ballast: Path) -> None:
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)


def test_a_disk_that_refuses_to_write_is_said(tmp_path):
    """A limit on file sizes stands for any failing disk."""
    file = tmp_path / "legion.db"
    store = Store(sqlite_url(file))
    store.migrate()
    with store.write() as tx:
        add_project(tx)
    store.close()

    def write() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        with pytest.raises(StoreBroken) as caught, Store(sqlite_url(file)).write() as tx:
            add_ticket(tx, 1, context="x" * 1_000_000)
        assert one_sentence(caught.value)

    assert in_a_process(write) == 0
    store = Store(sqlite_url(file))
    with store.read() as view:
        assert tickets.live(view) == ()
    store.close()


@contextlib.contextmanager
def held(database_url: str) -> Iterator[None]:
    """Another program is writing."""
    url = make_url(database_url)
    if url.get_backend_name() == "sqlite":
        with contextlib.closing(sqlite3.connect(str(url.database), isolation_level=None)) as lite:
            lite.execute("BEGIN IMMEDIATE")
            yield
    else:
        with psycopg.connect(host=str(url.query["host"]), user="legion", dbname=url.database) as server:
            server.execute("SELECT * FROM counters WHERE name = 'event' FOR UPDATE")
            yield


def test_a_database_held_by_somebody_else_for_too_long_is_said(migrated_url):
    store = Store(migrated_url, patience=0.2)
    with held(migrated_url):
        with pytest.raises(StoreBusy) as caught, store.write() as tx:
            tx.record(EventKind.WARNING)
        assert one_sentence(caught.value)
    with store.write() as tx:
        assert tx.record(EventKind.WARNING) == 1
    store.close()


def test_a_number_that_no_column_holds_is_not_found(migrated_url):
    store = Store(migrated_url)
    with contextlib.suppress(NotFound), store.read() as tx:
        assert tickets.states_of(tx, [2**40]) == {}
    with pytest.raises(NotFound), store.read() as tx:
        tickets.get(tx, 2**40)
    store.close()


def test_a_thread_that_waits_too_long_for_another_is_told_so(migrated_url):
    store = Store(migrated_url, patience=0.2)

    def write() -> None:
        with store.write() as tx:
            tx.record(EventKind.WARNING)

    with ThreadPoolExecutor() as threads, store.write():
        assert isinstance(threads.submit(write).exception(timeout=30), StoreBusy)
    store.close()


def test_a_server_that_does_not_answer_is_said_without_the_password(tmp_path):
    store = Store(f"postgresql://ada:secret@/legion?host={tmp_path}")
    with pytest.raises(StoreUnreachable) as caught:
        store.migrate()
    assert one_sentence(caught.value)
    assert "secret" not in caught.value.message
    store.close()
