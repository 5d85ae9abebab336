from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.runner.launch import Launcher
from tests.runner.runs import Workbench


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher | None]:
    """One fork server for the runs of a file."""
    one = Launcher()
    yield one
    one.close()


@pytest.fixture(params=[True, False], ids=["sandboxed", "bare"])
def bench(request: pytest.FixtureRequest, tmp_path: Path, launcher: Launcher | None) -> Iterator[Workbench]:
    """A workbench whose runs are in a sandbox, and then one whose runs are not: both must keep the same promises."""
    workbench = Workbench(tmp_path, sandboxed=request.param, shared=launcher)
    yield workbench
    workbench.close()


@pytest.fixture
def sandboxed(tmp_path: Path, launcher: Launcher | None) -> Iterator[Workbench]:
    workbench = Workbench(tmp_path, shared=launcher)
    yield workbench
    workbench.close()
