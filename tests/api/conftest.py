from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.serving import Served, serving


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with tempfile.TemporaryDirectory(prefix="legion-") as folder, serving(Path(folder)) as running:
        yield running


@pytest.fixture
def served(server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Served:
    """The server with an empty board; starting one for each test would take longer than the test."""
    monkeypatch.setenv("LEGION_CONFIG", str(tmp_path / "config.toml"))
    server.board.reset()
    return server
