"""A person with a small repository, and the grounds that Legion keeps for it."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.git.making import Grounds, Person

LINES = "".join(f"line {number}\n" for number in range(1, 21))


@functools.cache
def _first() -> Path:
    """The repository and the grounds of every test, made once per process: a dozen gits take longer than a copy."""
    folder = Path(tempfile.mkdtemp(prefix="legion-git-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    person = Person.with_repository(folder / "repo")
    person.commit(
        {
            "README.md": "# A project\n",
            "src/app.py": LINES,
            "src/lib.py": LINES,
            "run.sh": "#!/bin/sh\n",
            ".gitignore": "*.log\nbuild/\n",
        },
        "first",
    )
    Grounds(folder / "legion", person)
    return folder


def fresh_person(folder: Path) -> Person:
    shutil.copytree(_first() / "repo", folder / "repo")
    person = Person(folder / "repo")
    # The index knows its files by their numbers.
    person.git("update-index", "-q", "--refresh")
    return person


def fresh_grounds(folder: Path, person: Person) -> Grounds:
    shutil.copytree(_first() / "legion", folder / "legion")
    return Grounds(folder / "legion", person)


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return fresh_person(tmp_path)


@pytest.fixture
def grounds(tmp_path: Path, person: Person) -> Grounds:
    return fresh_grounds(tmp_path, person)
