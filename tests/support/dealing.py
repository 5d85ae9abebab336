"""The order in which the workers of a session play the files: each begins with its share of the long ones.

xdist gives each worker a piece of the list, of as many tests as the others get, and later moves tests from the end of
the longest queue. In the order of names all workers would end in the scenarios, which wait for daemons; this way they
end with short tests, which fill every core.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support import places


def dealt(items: Sequence[pytest.Item], workers: int) -> list[pytest.Item]:
    """The tests of a file stay together, but where a piece ends."""
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    short = [item for path, tests in files.items() if places.is_quick(path) for item in tests]
    hands: list[list[pytest.Item]] = [[] for _ in range(workers)]
    for number, tests in enumerate(tests for path, tests in files.items() if not places.is_quick(path)):
        hands[number % workers] += tests
    left = len(items)
    for number, hand in enumerate(hands):
        size = left // (workers - number)
        missing = max(0, size - len(hand))
        hand += short[:missing]
        del short[:missing]
        left -= size
    return [item for hand in (*hands, short) for item in hand]
