from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runner.runs import Workbench


@pytest.fixture(params=[True, False], ids=["sandboxed", "bare"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Workbench]:
    """A workbench whose runs are in a sandbox, and then one whose runs are not: both must keep the same promises."""
    workbench = Workbench(tmp_path, sandboxed=request.param)
    yield workbench
    workbench.close()


@pytest.fixture
def sandboxed(tmp_path: Path) -> Iterator[Workbench]:
    workbench = Workbench(tmp_path)
    yield workbench
    workbench.close()
