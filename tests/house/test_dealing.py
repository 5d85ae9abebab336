"""Workers begin with the tests that wait for programs and end with short ones."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support import places
from tests.support.codebase import ROOT
from tests.support.dealing import dealt

LONG = ["crash/test_hundred.py", "scenarios/test_throttle.py", "scenarios/test_undo.py", "web/test_keys.py"]
SHORT = ["domain/test_moves.py", "domain/test_shell.py", "service/test_rights.py"]


def items(*names: str, each: int = 3) -> list[Any]:
    return [SimpleNamespace(path=ROOT / "tests" / name, number=n) for name in names for n in range(each)]


@pytest.mark.parametrize("workers", [1, 2, 3, 7, 40])
def test_every_test_is_dealt_once_and_those_of_a_long_file_stay_together(workers: int):
    every = items(*LONG, *SHORT)
    order = dealt(every, workers)
    assert sorted(map(id, order)) == sorted(map(id, every))
    for name in LONG:
        numbers = [n for n, one in enumerate(order) if one.path == ROOT / "tests" / name]
        assert numbers == list(range(numbers[0], numbers[0] + 3))


def test_each_piece_begins_with_long_files_and_ends_with_short_ones():
    order = dealt(items(*sorted([*LONG, *SHORT]), each=4), 2)
    pieces = order[:14], order[14:]
    for piece in pieces:
        quick = [places.is_quick(Path(one.path)) for one in piece]
        assert quick == sorted(quick)
        assert quick.count(True) == 6
