from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.demo.person import Person


@pytest.fixture
def ada(tmp_path: Path) -> Iterator[Person]:
    person = Person(tmp_path).settle()
    yield person
    person.leave()
