"""Long loops are sampled by one seed: the same seed gives the same sample on every worker."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from typing import Any

import pytest

# The first process of a session draws it; the workers inherit it.
SEED = int(os.environ.setdefault("LEGION_SEED", str(random.SystemRandom().randrange(1, 10**6))))


def sampled(values: Iterable[Any], count: int) -> list[Any]:
    """All values for `parametrize`: `count` of them in `make test`, the others marked soak."""
    every = list(values)
    drawn = random.Random(SEED).sample(range(len(every)), min(count, len(every)))
    chosen = set(drawn)
    return [pytest.param(value, marks=() if n in chosen else pytest.mark.soak) for n, value in enumerate(every)]
