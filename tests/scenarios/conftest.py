"""A squad with one project, on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.legion import Project, Squad, squad
from tests.support.repository import Repository


@pytest.fixture
def legion(tmp_path: Path) -> Iterator[Squad]:
    with squad(tmp_path) as one:
        yield one


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "ada")


@pytest.fixture
def project(legion: Squad, repository: Repository) -> Project:
    return legion.adopt(repository)
