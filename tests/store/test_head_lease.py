"""The lease of the head on a real Postgres: one holder, generations, and the fence of the store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import create_engine, text

from legion.domain.events import EventKind
from legion.store import events
from legion.store.database.errors import HeadReplaced
from legion.store.database.head_lease import HeadLease
from legion.store.database.transactions import Store
from tests.support.postgres import fresh_database


@pytest.fixture
def url() -> Iterator[str]:
    with fresh_database() as url:
        yield url


@contextmanager
def lease(url: str, holder: str) -> Iterator[HeadLease]:
    one = HeadLease(url, holder)
    try:
        yield one
    finally:
        one.close()


def lapse(url: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE head_leases SET until = until - 16"))
    engine.dispose()


def test_one_head_at_a_time_and_a_fence_for_the_one_before(url: str):
    first, second = Store(url), Store(url)
    with lease(url, "a:/data") as a, lease(url, "b:/data") as b:
        assert not a.is_held_by_other()  # there is no table yet
        first.migrate()
        assert a.take() == 1
        first.fence(1)
        assert b.is_held_by_other()
        assert b.take() is None
        assert a.renew() is True
        lapse(url)
        assert b.take() == 2
        second.fence(2)
        assert a.renew() is False
        with pytest.raises(HeadReplaced), first.write() as tx:
            tx.record(EventKind.WARNING, data={})
        with second.write() as tx:
            tx.record(EventKind.WARNING, data={})
            assert events.last(tx) == 1
    first.close()
    second.close()


def test_the_same_folder_takes_its_lease_again_at_once_and_a_released_one_is_free(url: str):
    store = Store(url)
    store.migrate()
    store.close()
    with lease(url, "a:/data") as killed:
        assert killed.take() == 1
        with lease(url, "a:/data") as again:
            assert not again.is_held_by_other()
            assert again.take() == 2
        with lease(url, "b:/data") as other:
            assert other.take() == 3
        assert killed.renew() is False


def test_a_database_that_is_gone_is_not_a_lost_lease(tmp_path):
    with lease(f"postgresql://legion@/none?host={tmp_path}", "a:/data") as one:
        assert one.renew() is None
