from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.serving import Served, serving
from tests.support.board import Board


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with tempfile.TemporaryDirectory(prefix="legion-") as folder, serving(Path(folder)) as running:
        yield running


@pytest.fixture
def board(server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Board:
    """An empty board of the real service, which a real server answers for."""
    server.board.reset()
    for name in ("LEGION_URL", "LEGION_TOKEN", "NO_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LEGION_CONFIG", str(tmp_path / "config.toml"))
    return server.board
