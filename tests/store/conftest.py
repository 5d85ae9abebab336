"""A migrated store of the test's own, on each database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from legion.domain.projects import Project
from legion.store.database.transactions import Store
from tests.store.making import add_project


class Clock:
    """A clock that goes one second further with every transaction."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


@pytest.fixture
def store(migrated_url: str) -> Iterator[Store]:
    store = Store(migrated_url, clock=Clock())
    yield store
    store.close()


@pytest.fixture
def project(store: Store) -> Project:
    with store.write() as tx:
        return add_project(tx)
