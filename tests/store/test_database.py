"""Transactions: whole or not at all, one writer at a time, numbers without gaps, listeners after the fact."""

from __future__ import annotations

import contextlib
import random
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Engine, event, func, insert, make_url, select, text
from sqlalchemy.engine.interfaces import CacheStats

from legion.domain.events import EventKind
from legion.domain.scheduling.decide import JobKind
from legion.store import events
from legion.store.board import projects, tickets
from legion.store.database import schema
from legion.store.database.errors import StoreBusy, StoreReadOnly
from legion.store.database.transactions import Store, sqlite_url
from legion.store.work import claims
from legion.system.crash import Point
from tests.store.making import add_project, add_ticket, dies_at, in_a_process
from tests.support.migrated import migrated_file


class Oops(Exception):
    pass


def oops() -> None:
    raise Oops


@pytest.fixture
def connections() -> Iterator[list[sqlite3.Connection]]:
    """Every connection that is opened during the test."""
    opened: list[sqlite3.Connection] = []

    def remember(connection: sqlite3.Connection, _record: object) -> None:
        opened.append(connection)

    event.listen(Engine, "connect", remember)
    yield opened
    event.remove(Engine, "connect", remember)


def test_a_block_that_raises_leaves_nothing(store, project):
    with store.read() as tx:
        before = events.last(tx)
    with contextlib.suppress(Oops), store.write() as tx:
        add_ticket(tx, project.id)
        oops()
    with store.read() as tx:
        assert tickets.live(tx) == ()
        assert events.last(tx) == before
    with store.write() as tx:
        assert add_ticket(tx, project.id).id == 1, "the number of a ticket that never was is given again"


def test_time_stands_still_in_a_transaction(store, project):
    with store.write() as tx:
        first = add_ticket(tx, project.id)
        second = add_ticket(tx, project.id)
    assert first.created_at == second.created_at == tx.now
    with store.write() as later:
        assert later.now > tx.now


def test_write_inside_write_is_refused_at_once(store):
    with store.write() as tx:
        with pytest.raises(RuntimeError, match="pass the transaction on"), store.write():
            pass
        add_project(tx)
    with store.read() as tx:
        assert len(projects.all(tx)) == 1


def test_a_reader_sees_one_moment_and_holds_nobody_up(store, project):
    with store.read() as tx:
        assert tickets.live(tx) == ()
        with store.write() as writer:
            add_ticket(writer, project.id)
        assert tickets.live(tx) == ()
    with store.read() as tx:
        assert len(tickets.live(tx)) == 1


def test_a_reader_cannot_write(store):
    with pytest.raises(StoreReadOnly), store.read() as tx:
        tx.execute(insert(schema.counters), [{"name": "mine", "value": 1}])


def test_listeners_hear_of_news_after_the_commit_and_of_nothing_else(store, project):
    heard: list[int] = []

    def listen() -> None:
        with store.read() as tx:
            heard.append(events.last(tx))

    store.on_commit(listen)
    with store.write() as tx:
        number = tx.record(EventKind.WARNING, data={"why": "first"})
        assert heard == []
    assert heard == [number]
    with store.write() as tx:
        events.last(tx)
        claim = claims.claim(tx, JobKind.LAND, project.id, "here")
    with contextlib.suppress(Oops), store.write() as tx:
        tx.record(EventKind.WARNING)
        oops()
    assert heard == [number], "nothing new happened"
    with store.write() as tx:
        claims.finish(tx, claim)
    assert heard == [number, number], "a job that ends is news, since something else may start"


def test_event_numbers_have_no_gaps_and_follow_the_commits_under_many_threads(store, seed):
    """A reader that follows by number while eight threads write and sometimes fail never meets a hole."""
    writers, each = 8, 25
    done = threading.Event()
    seen: list[int] = []

    def write(who: int) -> None:
        chance = random.Random(seed * 100 + who)
        for _ in range(each):
            with contextlib.suppress(Oops), store.write() as tx:
                tx.record(EventKind.WARNING, data={"who": who})
                tx.record(EventKind.WARNING, data={"who": who})
                if chance.random() < 0.3:
                    oops()

    def follow() -> None:
        finished = False
        while True:
            with store.read() as tx:
                news = events.after(tx, len(seen), limit=7)
                last = events.last(tx)
            assert [item.n for item in news] == list(range(len(seen) + 1, len(seen) + 1 + len(news)))
            assert len(seen) + len(news) <= last
            seen.extend(item.n for item in news)
            if finished and not news:
                return
            finished = done.is_set()

    failures: list[BaseException] = []

    def guarded(work, *arguments) -> None:
        try:
            work(*arguments)
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=guarded, args=(write, who)) for who in range(writers)]
    reader = threading.Thread(target=guarded, args=(follow,))
    for thread in (reader, *threads):
        thread.start()
    for thread in threads:
        thread.join(60)
    done.set()
    reader.join(60)
    assert not failures
    assert not reader.is_alive()
    with store.read() as tx:
        assert len(seen) == events.last(tx) == tx.execute(select(func.count()).select_from(schema.events)).scalar_one()
    assert 0 < len(seen) <= writers * each * 2


def test_event_numbers_have_no_gaps_between_processes(migrated_url, store):
    def write() -> None:
        mine = Store(migrated_url)
        for _ in range(30):
            with mine.write() as tx:
                tx.record(EventKind.WARNING)
        mine.close()

    outside = threading.Thread(target=lambda: codes.append(in_a_process(write)))
    codes: list[int] = []
    outside.start()
    for _ in range(30):
        with store.write() as tx:
            tx.record(EventKind.WARNING)
    outside.join(60)
    assert codes == [0]
    with store.read() as tx:
        assert [item.n for item in events.after(tx, 0)] == list(range(1, 61))


def test_a_writer_of_another_process_waits_before_it_reads(migrated_url, store):
    """Else two could decide on the same facts. Another store has other connections, as another process has."""
    other = Store(migrated_url, patience=0.2)
    with store.write(), pytest.raises(StoreBusy), other.write() as tx:
        events.last(tx)
    with other.write() as tx:
        assert tx.record(EventKind.WARNING) == 1
    other.close()


def test_a_kill_before_the_commit_leaves_nothing_half(migrated_url, store, project):
    def create() -> None:
        with Store(migrated_url).write() as tx:
            add_ticket(tx, project.id)
            add_ticket(tx, project.id, after=(1,))

    dies_at(Point.STORE_WRITE_BEFORE_COMMIT, create)
    with store.read() as tx:
        assert tickets.live(tx) == ()
        assert [item.kind for item in events.after(tx, 0)] == [EventKind.PROJECT_ADDED]
    with store.write() as tx:
        add_ticket(tx, project.id)
    with store.read() as tx:
        assert [item.n for item in events.after(tx, 0)] == [1, 2]


def test_a_kill_after_the_commit_loses_nothing(migrated_url, store, project):
    def create() -> None:
        with Store(migrated_url).write() as tx:
            add_ticket(tx, project.id)

    dies_at(Point.STORE_WRITE_AFTER_COMMIT, create)
    with store.read() as tx:
        assert [ticket.id for ticket in tickets.live(tx)] == [1]
        assert [item.n for item in events.after(tx, 0)] == [1, 2]


def test_sqlite_waits_for_the_disk_at_every_commit(tmp_path, connections):
    store = Store(sqlite_url(tmp_path / "legion.db"))
    store.migrate()
    (writer,) = connections
    assert writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert writer.execute("PRAGMA synchronous").fetchone() == (2,), "2 is FULL"
    store.close()


def test_connections_of_a_rush_of_readers_are_closed_behind_it(tmp_path: Path, connections):
    """Each keeps a page cache and a hundred prepared statements: up to 3 MB."""
    store = Store(migrated_file(tmp_path / "legion.db"))
    together = threading.Barrier(12)

    def read() -> None:
        with store.read():
            together.wait(10)

    threads = [threading.Thread(target=read) for _ in range(together.parties)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(connections) == together.parties
    assert sum(_is_open(one) for one in connections) == 4
    with store.read():
        assert len(connections) == together.parties
    store.close()
    assert not any(_is_open(one) for one in connections)


def _is_open(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("SELECT 1")
    except sqlite3.ProgrammingError:
        return False
    return True


def test_odd_file_names_are_fine(tmp_path):
    file = tmp_path / "a folder?" / "äöü %20#.db"
    file.parent.mkdir()
    store = Store(sqlite_url(file))
    store.migrate()
    store.close()
    assert file.exists()


def test_what_is_compiled_for_one_file_holds_for_all(tmp_path):
    compiled = []
    for name in ("one", "other"):
        with contextlib.closing(Store(migrated_file(tmp_path / name))) as store, store.read() as tx:
            answer = tx.execute(select(schema.counters.c.value.label("compiled_once")))
            compiled.append(answer.context.cache_hit)
    assert compiled == [CacheStats.CACHE_MISS, CacheStats.CACHE_HIT]


def test_a_lost_connection_to_postgres_is_mended_by_the_next_transaction(migrated_postgres_url):
    store = Store(migrated_postgres_url)
    with store.write() as tx:
        add_project(tx)
    with store.read() as tx:
        assert len(projects.all(tx)) == 1
    url = make_url(migrated_postgres_url)
    with psycopg.connect(host=str(url.query["host"]), user="legion", dbname=url.database, autocommit=True) as other:
        others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()"
        assert len(other.execute(others, (url.database,)).fetchall()) == 2
    with store.write() as tx:
        tx.record(EventKind.WARNING)
    with store.read() as tx:
        assert events.last(tx) == 2
    store.close()


def test_a_reader_sees_what_was_committed_just_before(store):
    for number in range(1, 20):
        with store.write() as tx:
            tx.record(EventKind.WARNING)
        with store.read() as tx:
            assert events.last(tx) == number


def test_a_store_leaves_no_files_beside_its_own(tmp_path: Path):
    store = Store(sqlite_url(tmp_path / "legion.db"))
    store.migrate()
    with store.write() as tx:
        add_project(tx)
    with store.read() as tx:
        assert tx.execute(text("PRAGMA integrity_check")).scalar_one() == "ok"
    store.close()
    assert [path.name for path in tmp_path.iterdir()] == ["legion.db"]


def test_a_read_inside_a_read_is_refused(store: Store):
    """Each takes a connection of the pool: enough threads that nest them would wait for each other."""
    with store.read(), pytest.raises(RuntimeError, match="inside read"), store.read():
        pass
    with store.read() as tx:
        assert tx.now


def test_a_read_that_raises_ends_its_moment(store, project):
    with contextlib.suppress(Oops), store.read() as tx:
        assert tickets.live(tx) == ()
        oops()
    with store.write() as tx:
        add_ticket(tx, project.id)
    with store.read() as tx:
        # By a prepared statement and by SQLAlchemy, in one transaction.
        assert len(tickets.live(tx)) == tx.execute(select(func.count()).select_from(schema.tickets)).scalar_one() == 1
