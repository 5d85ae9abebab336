from __future__ import annotations

from collections.abc import Iterator

import pytest

from legion.runner.launch import Launcher


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher]:
    """One fork server for the runs of a file, since each imports the SDKs of the drivers again."""
    one = Launcher()
    yield one
    one.close()
