from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.serving import Served, serving
from tests.api.standin import StandIn


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder whose path is short enough for a socket."""
    folder = Path(tempfile.mkdtemp(prefix="legion-"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with tempfile.TemporaryDirectory(prefix="legion-") as folder, serving(StandIn(), Path(folder, "data")) as running:
        yield running


@pytest.fixture
def served(server: Served) -> Served:
    """The server with nothing in it yet; starting one for each test would take longer than the test."""
    server.service.reset()
    return server
