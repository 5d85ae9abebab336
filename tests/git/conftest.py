"""A person with a small repository, and the grounds that Legion keeps for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.git.making import Grounds, Person

LINES = "".join(f"line {number}\n" for number in range(1, 21))


@pytest.fixture
def person(tmp_path: Path) -> Person:
    person = Person.with_repository(tmp_path / "repo")
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
    return person


@pytest.fixture
def grounds(tmp_path: Path, person: Person) -> Grounds:
    return Grounds(tmp_path / "legion", person)
