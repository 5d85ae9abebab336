"""Pictures of every screen in three sizes. `python -m tests.tui.pictures` takes them again; read what changed."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest

from tests.api.serving import serving
from tests.tui.pictures import PICTURES, SIZES, TEXTS, fill, gallery, name_of, steady


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    with (
        pytest.MonkeyPatch.context() as patch,
        tempfile.TemporaryDirectory(prefix="legion-") as folder,
        serving(Path(folder)) as served,
    ):
        patch.setenv("LEGION_CONFIG", f"{folder}/config.toml")
        fill(served.board)
        return asyncio.run(gallery(served.board))


@pytest.mark.parametrize("name", [name_of(picture, size) for picture in PICTURES for size in SIZES])
def test_a_screen_looks_as_it_did(texts: dict[str, str], name: str):
    assert texts[name] == (TEXTS / f"{name}.txt").read_text()


def test_what_differs_from_run_to_run_is_not_compared():
    assert steady("at 12:34:56 for 1m 04s, 3f2a1c9d0\n") == "at 00:00:00 for 0s    , 0a1b2c3d4\n"
