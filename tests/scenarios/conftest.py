"""Daemons, projects and gates. Most scenarios share one daemon per test process, each with a project of its own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from legion.wire.projects import Where
from tests.support.gates import Gate
from tests.support.legion import Project, Squad, squad
from tests.support.repository import CHECK, Repository

Make = Callable[..., Project]


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Squad]:
    """The daemon that scenarios share. Nobody kills it; agents can write into its folder `gates`."""
    folder = tmp_path_factory.mktemp("house")
    with squad(folder, settings=settings_with_gates(folder)) as one:
        yield one


def settings_with_gates(folder: Path) -> str:
    (folder / "gates").mkdir()
    return f'[sandbox]\nwrite = ["{folder}/gates"]\n'


@pytest.fixture
def make(house: Squad, tmp_path: Path) -> Iterator[Make]:
    """Makes projects: `make()` with the usual check, `make(config)` with another legion.toml."""
    made: list[Project] = []
    names = (f"ada{number}" for number in itertools.count(1))

    def project(config: str = CHECK, files: dict[str, str] | None = None) -> Project:
        repository = Repository(tmp_path / next(names), config)
        if files:
            repository.commit("more", files)
        made.append(house.adopt(repository))
        return made[-1]

    yield project
    for one in made:
        house.client.stop_all(Where(cwd=one.cwd))


@pytest.fixture
def project(make: Make) -> Project:
    return make()


def shared_project(house: Squad, folder: Path, files: dict[str, str] | None = None) -> Iterator[Project]:
    """For a module's own fixture `project`: one project for tests that look at their own tickets and files only."""
    repository = Repository(folder / "ada")
    if files:
        repository.commit("more", files)
    one = house.adopt(repository)
    yield one
    house.client.stop_all(Where(cwd=one.cwd))


@pytest.fixture
def gates(house: Squad) -> Iterator[Callable[[], Gate]]:
    """Makes gates that the agents of the shared daemon can reach."""
    made: list[Gate] = []

    def gate() -> Gate:
        made.append(Gate(house.folder / "gates", f"gate{next(_NUMBERS)}"))
        return made[-1]

    yield gate
    for one in made:
        one.close()


_NUMBERS = itertools.count(1)


@pytest.fixture
def gate(gates: Callable[[], Gate]) -> Gate:
    return gates()


@pytest.fixture
def legion(tmp_path: Path) -> Iterator[Squad]:
    """A daemon of this test's own."""
    with squad(tmp_path) as one:
        yield one


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "ada")
