"""What `make quick` runs starts no daemon, no agent program and no scripted model."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import places
from tests.support.codebase import ROOT

STARTING = {
    "tests.support.legion.squad",
    "tests.support.models.company",
    "tests.support.stage.playing",
    "tests.support.warm.warm",
}
"""Functions that start a process which the next test would have to wait for."""
FILES = [path for path in sorted((ROOT / "tests").rglob("test_*.py")) if places.is_quick(path)]


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{name.name}" for name in node.names)


def test_the_quick_files_import_nothing_that_starts_a_program():
    assert len(FILES) > 80
    found = {str(path.relative_to(ROOT)): sorted(STARTING & set(imported(path))) for path in FILES}
    assert {path: names for path, names in found.items() if names} == {}


def test_a_file_with_a_daemon_would_be_found():
    assert STARTING & set(imported(ROOT / "tests/scenarios/test_throttle.py"))


@pytest.mark.parametrize("place", ["domain/test_moves.py", "service/test_rights.py", "store/test_tickets.py"])
def test_rules_use_cases_and_rows_are_quick(place: str):
    assert places.is_quick(ROOT / "tests" / place)
