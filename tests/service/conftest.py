"""The service on a real store and real git, with no daemon and no runs: for rules and sentences."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.legion import Project
from tests.support.office import QuietSquad, office
from tests.support.repository import CHECK, Repository


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QuietSquad]:
    folder = tmp_path_factory.mktemp("quiet")
    with office(folder) as here:
        yield QuietSquad(folder, here)


@pytest.fixture
def make(house: QuietSquad, tmp_path: Path) -> Callable[..., Project]:
    """Makes projects: `make()` with the usual check, `make(config)` with another legion.toml."""
    names = (f"ada{number}" for number in itertools.count(1))
    return lambda config=CHECK: house.adopt(Repository(tmp_path / next(names), config))


@pytest.fixture
def project(make: Callable[..., Project]) -> Project:
    return make()
