"""Workers of a fresh checkout divide the test files among them: asserts are rewritten once, not once per worker."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def import_in_turn(config: pytest.Config, ignored: Callable[[Path], bool]) -> None:
    """Import what this worker is about to collect, beginning with its own share.

    pytest keeps each rewritten file in `__pycache__`, where the other workers find it.
    """
    worker: dict[str, object] = getattr(config, "workerinput", {})
    if not worker:
        return
    files = [file for file in _files(config) if not ignored(file)]
    first = len(files) * int(str(worker["workerid"]).removeprefix("gw")) // int(str(worker["workercount"]))
    for file in (*files[first:], *files[:first]):
        name = ".".join(file.relative_to(ROOT).with_suffix("").parts)
        # The collection imports it once more and reports what is wrong.
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(name)


def _files(config: pytest.Config) -> list[Path]:
    """The test files below pytest's arguments, in the same order in every worker."""
    places = [config.invocation_params.dir / arg.partition("::")[0] for arg in config.args]
    left_out = {Path(place).absolute() for place in config.getoption("ignore") or ()}
    found = {
        file
        for place in places
        for file in (place.rglob("test_*.py") if place.is_dir() else [place])
        if file.is_relative_to(ROOT) and file not in left_out
    }
    return sorted(found)
