from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from legion.cli.run import run
from tests.api.serving import Served, serving
from tests.support.board import Board
from tests.support.codebase import SOURCE


@dataclass(frozen=True)
class Ended:
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with tempfile.TemporaryDirectory(prefix="legion-") as folder, serving(Path(folder)) as running:
        yield running


@pytest.fixture
def board(server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Board:
    """An empty board, found by commands in this process and below; they start in its project."""
    server.board.reset()
    for name in ("LEGION_URL", "LEGION_TOKEN", "NO_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LEGION_DATA_DIR", str(server.socket.parent))
    monkeypatch.setenv("LEGION_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.setenv("PYTHONPATH", str(SOURCE.parent))
    monkeypatch.chdir(server.board.cwd)
    return server.board


@pytest.fixture
def legion(board: Board, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """Runs a command in this process."""

    def call(*words: str) -> Ended:
        code = run(words)
        out, err = capsys.readouterr()
        return Ended(code, out, err)

    return call


@pytest.fixture
def program(board: Board) -> Callable[..., Ended]:
    """Runs a command as the program that it is."""

    def call(*words: str | bytes, stdin: bytes = b"", env: dict[str, str] | None = None, **told: Any) -> Ended:
        ended = subprocess.run(
            [sys.executable, "-m", "legion", *words],
            input=stdin,
            capture_output=True,
            env={**os.environ, **(env or {})},
            timeout=60,
            check=False,
            **told,
        )
        return Ended(ended.returncode, ended.stdout.decode("utf-8", "replace"), ended.stderr.decode("utf-8", "replace"))

    return call


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder whose path is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="legion-") as folder:
        yield Path(folder)
