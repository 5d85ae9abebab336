"""Which test files `make quick` runs, by their places: those that start no program and need no Postgres."""

from __future__ import annotations

import functools
from pathlib import Path

_TESTS = Path(__file__).parents[1]
_QUICK = (
    "api/test_words.py",
    "cli",
    "config",
    "conversations",
    "docs",
    "domain",
    "drivers",
    "gateway/dialects",
    "gateway/test_golden.py",
    "gateway/test_ledger.py",
    "gateway/test_limits.py",
    "gateway/test_prices.py",
    "service",
    "store",
)
_NOT_QUICK = (
    # daemons, commands and agent programs as processes of their own
    *(
        "cli/test_finding.py",
        "cli/test_head.py",
        "cli/test_program.py",
        "drivers/test_acp.py",
        "drivers/test_command.py",
    ),
    *("drivers/test_json_runs.py", "service/test_bad_input.py"),
    # npm
    "config/test_guess.py",
)


def is_quick(path: Path) -> bool:
    return _is_in(_QUICK, path) and not _is_in(_NOT_QUICK, path)


@functools.cache
def _is_in(places: tuple[str, ...], path: Path) -> bool:
    return any(path.is_relative_to(_TESTS / place) for place in places)
