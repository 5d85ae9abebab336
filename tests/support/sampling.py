"""Long loops are sampled by one seed: the same seed gives the same sample on every worker."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable
from typing import Any

import pytest

# The first process of a session draws it; the workers inherit it.
SEED = int(os.environ.setdefault("LEGION_SEED", str(random.SystemRandom().randrange(1, 10**6))))


def sampled(values: Iterable[Any], count: int, kind: Callable[[Any], object] = lambda _value: None) -> list[Any]:
    """All values for `parametrize`: `count` of them in `make test`, the others marked soak.

    The kinds take turns, so that a sample as large as their number has one of each.
    """
    every = list(values)
    chosen = _drawn(every, count, kind)
    return [pytest.param(value, marks=() if n in chosen else pytest.mark.soak) for n, value in enumerate(every)]


def sampled_together(
    values: Iterable[Any], count: int, kind: Callable[[Any], object] = lambda _value: None
) -> list[Any]:
    """Two lists for `parametrize`, for a test that goes through many values in one run.

    `count` of the values in `make test`, drawn as `sampled` does, and all of them, marked soak.
    """
    every = list(values)
    chosen = _drawn(every, count, kind)
    some = [value for n, value in enumerate(every) if n in chosen]
    return [pytest.param(some, id="sample"), pytest.param(every, id="all", marks=pytest.mark.soak)]


def _drawn(every: list[Any], count: int, kind: Callable[[Any], object]) -> set[int]:
    """The places of the drawn values."""
    rounds: dict[object, int] = {}
    turns = []
    for n in random.Random(SEED).sample(range(len(every)), len(every)):
        turn = rounds[kind(every[n])] = rounds.get(kind(every[n]), 0) + 1
        turns.append((turn, n))
    return {n for _, n in sorted(turns, key=lambda one: one[0])[:count]}
